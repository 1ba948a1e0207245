-- Ends what was done for an entry of the list. ARGV: id, doubted from when, owner, '1' where it is done.
open()
local n = by_id(ARGV[1])
if not n then return end
local due = call('HMGET', K('due', n), 'at', 'waiting', 'owner')
if due[1] ~= ARGV[2] or (due[3] ~= '' and due[3] ~= ARGV[3]) then return end
call('HSET', K('due', n), 'owner', '')
if ARGV[4] == '1' then
  call('HSET', K('due', n), 'waiting', '0')
  call('ZREM', K('due-order'), n)
elseif due[2] == '1' then
  call('ZADD', K('due-order'), call('HINCRBY', K('meta'), 'turns', 1), n)
end
