-- Keeps records as the newest. ARGV: shelf, how many stay, then name, tenant, entry, body of each.
open()
local shelf = ARGV[1]
for at = 3, #ARGV, 4 do
  local name, tenant, entry = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if entry == '' or by_id(entry) then
    drop_record(shelf, name)
    call('HSET', K('shelf', shelf), name, ARGV[at + 3])
    call('ZADD', K('shelf-order', shelf), call('HINCRBY', K('meta'), 'records', 1), name)
    if tenant ~= '' then
      call('HSET', K('shelf-tenants', shelf), name, tenant)
      call('SADD', K('shelved', tenant), cmsgpack.pack({shelf, name}))
    end
  end
end
while call('ZCARD', K('shelf-order', shelf)) > tonumber(ARGV[2]) do
  drop_record(shelf, call('ZRANGE', K('shelf-order', shelf), 0, 0)[1])
end
