-- Deletes an entry and marks the pairs it was served to. ARGV: id, uses (MessagePack).
open()
local told = cmsgpack.unpack(ARGV[2])
write_uses(told.hits, told.servings)
for _, packed in ipairs(call('SMEMBERS', K('served', ARGV[1]))) do
  local serving = cmsgpack.unpack(packed)
  local partition, key, asked = serving[1], serving[2], serving[3]
  call('SADD', K('bad', partition), pair(asked, key), pair(key, asked))
  call('ZADD', K('bad-changed'), whole(tick()), partition)
end
local n = by_id(ARGV[1])
return n and drop_all({n}) or 0
