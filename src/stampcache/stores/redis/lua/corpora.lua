-- What the verbs of watched corpora share.
-- Watches a corpus from now on; whatever was written before was not seen.
local function know(corpus, now, unknown)
  local key = K('corpus', corpus)
  if call('HGET', key, 'watched') == '1' then return end
  call('HSET', key, 'watched', '1', 'heard', now)
  call('SADD', K('corpora'), corpus)
  log_change(corpus, unknown)
end

local function is_watched(corpus)
  return call('HGET', K('corpus', corpus), 'watched') == '1'
end

-- How a corpus stands: {problem, heard, silence, complete, swept, checked, drifted, chunks, intents}
local function standing(corpus)
  if not is_watched(corpus) then return {} end
  local found = call('HMGET', K('corpus', corpus), 'problem', 'heard', 'silence', 'complete', 'swept', 'checked', 'drifted')
  found[8] = call('HLEN', K('chunks', corpus))
  found[9] = call('HVALS', K('intents', corpus))
  return found
end

-- {id, record, sequence, whether it was found otherwise} for the chunks that are known of these.
local function chunks(corpus, ids)
  local found = {}
  for _, id in ipairs(ids) do
    local record = call('HGET', K('chunks', corpus), id)
    if record then
      found[#found + 1] = {id, record, call('ZSCORE', K('chunk-order', corpus), id),
        call('SISMEMBER', K('doubts', corpus), id)}
    end
  end
  return found
end
