-- Keeps a verdict. ARGV: id of the entry, verdict, how many are kept.
open()
local number = whole(call('HINCRBY', K('meta'), 'verdicts', 1))
call('RPUSH', K('verdicts'), ARGV[2])
call('RPUSH', K('verdict-ids'), number .. ':' .. ARGV[1])
call('HSET', K('verdict'), ARGV[1], number .. ':' .. ARGV[2])
while call('LLEN', K('verdicts')) > tonumber(ARGV[3]) do
  call('LPOP', K('verdicts'))
  local oldest, id = string.match(call('LPOP', K('verdict-ids')), '^(%d+):(.*)$')
  local kept = call('HGET', K('verdict'), id)
  if kept and string.match(kept, '^%d+') == oldest then call('HDEL', K('verdict'), id) end
end
