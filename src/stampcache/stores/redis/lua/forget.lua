-- Deletes some of what is kept of a tenant. ARGV: tenant, how many entries, and as many tickets.
-- {entries, bytes, whether that was all}. What was begun before is refused, and no replica keeps anything.
-- Who makes something for it has no ticket any more, so that nothing is told of how that ends.
open()
meta.floor = tick()
call('HSET', K('meta'), 'floor', whole(meta.floor))
local tenant = ARGV[1]
local bytes = 0
local rows = call('ZRANGE', K('tenant', tenant), 0, ARGV[2] - 1)
local gone = 0
for _, n in ipairs(rows) do
  local r = row(n)
  if r then
    local spot = pair(r.p, r.k)
    bytes = bytes + call('STRLEN', K('entry', spot)) + call('HSTRLEN', K('near', r.p), r.k)
      + call('HSTRLEN', K('row', n), 'vec') + call('HSTRLEN', K('row', n), 'r')
    drop(n, r)
    gone = gone + 1
  else
    forget_orphan(n)
    call('ZREM', K('tenant', tenant), n)
  end
end
local makings = call('ZRANGE', K('makings', tenant), 0, ARGV[2] - 1)
for _, key in ipairs(makings) do
  local told = call('GET', key)
  if told and string.sub(told, 1, 7) == 'failed:' then bytes = bytes + #told end
  call('DEL', key)
  call('ZREM', K('makings', tenant), key)
end
if math.max(#rows, #makings) == tonumber(ARGV[2]) then return {gone, bytes, 0} end

for _, number in ipairs(call('SMEMBERS', K('verdicts-of', tenant))) do bytes = bytes + drop_verdict(number) end
for _, packed in ipairs(call('SMEMBERS', K('shelved', tenant))) do
  local place = cmsgpack.unpack(packed)
  bytes = bytes + (drop_record(place[1], place[2]) or 0)
end
for _, id in ipairs(call('SMEMBERS', K('served-of', tenant))) do
  for _, packed in ipairs(call('SMEMBERS', K('served', id))) do
    call('ZREM', K('servings'), cmsgpack.pack({id, packed, tenant}))
  end
  call('DEL', K('served', id))
end
for _, partition in ipairs(call('SMEMBERS', K('partitions', tenant))) do
  call('DEL', K('near', partition), K('bad', partition))
  call('ZREM', K('bad-changed'), partition)
end
-- A change may quote why; and whoever began before is refused by the floor, so that nobody reads them again.
for _, corpus in ipairs(call('ZRANGE', K('changed'), 0, -1)) do
  call('UNLINK', K('changes', corpus))
  call('HDEL', K('floors'), K('changes', corpus))
end
call('DEL', K('changed'))
local stream = K('log', tenant)
call('DEL', stream, K('partitions', tenant), K('served-of', tenant), K('shelved', tenant),
  K('verdicts-of', tenant), K('tenant', tenant))
call('HDEL', K('floors'), stream)
call('ZREM', K('active'), tenant)
return {gone, bytes, 1}
