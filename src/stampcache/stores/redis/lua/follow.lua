-- What changed after a sequence. ARGV: sequence, most items.
-- {sequence, era, invalidations that are swept (sequence, body),
-- 'forgotten' (a tenant, or all that was before) | 'lost' | time,
-- items (partition, key, sequence, time), corpora, partitions of bad pairs}; of the first two only, if nothing did
open()
local head = {whole(meta.seq), whole(meta.era)}
local closing = meta.closing and call('HGETALL', K('closing')) or {}
local applied = tonumber(ARGV[1])
local function lost() return {head[1], head[2], closing, 'lost'} end
if applied < meta.floor or applied > meta.seq then return {head[1], head[2], closing, 'forgotten'} end
if applied == meta.seq then return head end
local after, items = '(' .. ARGV[1], {}
for _, tenant in ipairs(call('ZRANGEBYSCORE', K('active'), after, '+inf')) do
  local stream = K('log', tenant)
  local floor = call('HGET', K('floors'), stream)
  if floor and applied < tonumber(floor) then return lost() end
  local left = tonumber(ARGV[2]) - #items / 4
  local found = call('XRANGE', stream, after .. '-0', '+', 'COUNT', left + 1)
  if #found > left then return lost() end
  for _, item in ipairs(found) do
    local told = item[2]
    items[#items + 1] = told[2]
    items[#items + 1] = told[4]
    items[#items + 1] = string.match(item[1], '^%d+')
    items[#items + 1] = told[6]
  end
end
return {head[1], head[2], closing, whole(now_us()), items,
  call('ZRANGEBYSCORE', K('standings'), after, '+inf'),
  call('ZRANGEBYSCORE', K('bad-changed'), after, '+inf')}
