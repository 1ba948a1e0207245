-- Puts an entry on the list of what is to be looked after, if it is there, holds, and has this doubt.
-- ARGV: id, partition, key, doubted from when, scope, '1' where that is still to come.
-- {whether it may be served once more, the time between two rounds}
open()
local period = call('HGET', K('meta'), 'work-period') or '0'
local n = at(ARGV[2], ARGV[3])
local r = n and row(n)
local doubted, early = ARGV[4], ARGV[6] == '1'
if not holds(r) or r.i ~= ARGV[1] or doubted == '' or call('HGET', K('row', n), 'd') ~= doubted then
  return {0, period}
end
local known = call('HMGET', K('due', n), 'at', 'waiting', 'served')
local same = known[1] == doubted
local served = same and known[3] == '1'
if not same or known[2] ~= '1' then
  call('HSET', K('due', n), 'at', doubted, 'waiting', '1', 'served', (served or not early) and '1' or '0',
    'early', ARGV[6], 'scope', ARGV[5], 'owner', '', 'taken', '0')
  call('ZADD', K('due-order'), call('HINCRBY', K('meta'), 'turns', 1), n)
elseif not early and not served then
  call('HSET', K('due', n), 'early', '0', 'served', '1')
end
return {(early or not served) and 1 or 0, period}
