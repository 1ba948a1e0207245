-- Takes over what was written, unless something came since it was compared, or an invalidation is swept.
-- ARGV: what is told (MessagePack), trace of the unknown, trace, its mark, then intents (id, body), chunks
-- (id, record, digest of the vector, digest), answers (row, 'stale' | 'restored' | '', differences).
open()
local told = cmsgpack.unpack(ARGV[1])
local corpus = told.corpus
local key = K('corpus', corpus)
if meta.closing then return {'closing'} end
if (call('HGET', key, 'version') or '0') ~= told.version then return {'again'} end
know(corpus, told.now, ARGV[2])
call('HINCRBY', key, 'version', 1)

local next_argument = 4
local function following(count)
  local values = {}
  for place = 1, count do values[place] = ARGV[next_argument + place] end
  next_argument = next_argument + count
  return unpack(values)
end

local intents = K('intents', corpus)
if told.resolved ~= '' then call('HDEL', intents, told.resolved) end
for _ = 1, told.intents do
  local id, body = following(2)
  call('HSET', intents, id, body)
end

local stale, restored = 0, 0
if told.done then
  mark_all(touched(told.selectors, corpus), ARGV[4])
  local seq = log_change(corpus, ARGV[3])
  if told.doubts then call('HSET', key, 'doubted', whole(seq)) end
  for _, gone in ipairs(told.removed) do
    call('HDEL', K('chunks', corpus), gone[1])
    call('ZREM', K('chunk-order', corpus), gone[1])
    call('SREM', K('doubts', corpus), gone[1])
    if gone[2] ~= '' then call('HDEL', K('alike', pair(corpus, gone[2])), gone[1]) end
  end
  for _ = 1, told.added do
    local id, record, vector, digest = following(4)
    call('HSET', K('chunks', corpus), id, record)
    call('ZADD', K('chunk-order', corpus), whole(seq), id)
    call('SREM', K('doubts', corpus), id)
    if vector ~= '' then call('HSET', K('alike', pair(corpus, vector)), id, digest) end
  end
  for _ = 1, told.answers do
    local n, what, differences = following(3)
    local r = row(n)
    if r and r.rc == corpus then
      if differences == '' then
        call('HDEL', K('row', n), 'df')
      else
        call('HSET', K('row', n), 'df', differences)
      end
      if what == 'stale' and r.m == '' then
        suspend(n, r, ARGV[4])
        stale = stale + 1
      elseif what == 'restored' and r.m ~= '' then
        if r.q < meta.era then
          drop(n, r)
        else
          restore(n, r)
          restored = restored + 1
        end
      end
    end
  end
end

call('HSET', key, 'heard', told.now)
if told.complete ~= '' then call('HSET', key, 'complete', told.complete) end
restand(corpus)
reap()
return {'ok', stale, restored}
