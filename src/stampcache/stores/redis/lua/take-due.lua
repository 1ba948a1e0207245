-- Takes an entry from the list for a while. ARGV: id, doubted from when, owner, now, lease in seconds.
open()
local n = by_id(ARGV[1])
if not n then return 0 end
local due = call('HMGET', K('due', n), 'at', 'waiting', 'owner', 'taken')
if due[1] ~= ARGV[2] or due[2] ~= '1' then return 0 end
local since = tonumber(ARGV[4]) - tonumber(due[4])
if due[3] ~= '' and due[3] ~= ARGV[3] and since >= 0 and since < tonumber(ARGV[5]) then return 0 end
call('HSET', K('due', n), 'owner', ARGV[3], 'taken', ARGV[4])
return 1
