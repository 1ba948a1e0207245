-- Notes that an entry was found fresh, if it holds and has the doubt that was looked at.
-- ARGV: id, partition, key, at, doubtful at, doubtful at before.
-- Not while an invalidation is swept: what changes later than that is taken for stored later.
open()
if meta.closing then return 0 end
local n = at(ARGV[2], ARGV[3])
local r = n and row(n)
if not holds(r) or r.i ~= ARGV[1] then return 0 end
if (call('HGET', K('row', n), 'd') or '') ~= ARGV[6] then return 0 end
call('HSET', K('row', n), 'c', ARGV[4], 'd', ARGV[5])
return whole(changed(n, r))
