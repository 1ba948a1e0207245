-- Keeps a verdict; one of a tenant only while its entry is there.
-- ARGV: id of the entry, tenant, verdict, how many are kept.
open()
if ARGV[2] ~= '' and not by_id(ARGV[1]) then return end
local number = whole(call('HINCRBY', K('meta'), 'verdicts', 1))
call('ZADD', K('verdicts'), number, number)
call('HSET', K('verdict-bodies'), number, ARGV[3])
call('HSET', K('verdict-ids'), number, ARGV[1])
call('HSET', K('verdict-latest'), ARGV[1], number)
if ARGV[2] ~= '' then
  call('SADD', K('verdicts-of', ARGV[2]), number)
  call('HSET', K('verdict-tenants'), number, ARGV[2])
end
while call('ZCARD', K('verdicts')) > tonumber(ARGV[4]) do
  drop_verdict(call('ZRANGE', K('verdicts'), 0, 0)[1])
end
