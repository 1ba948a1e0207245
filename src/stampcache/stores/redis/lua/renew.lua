-- Lets an entry live longer, if it holds. ARGV: id, partition, key, epoch seconds, life in seconds.
-- Not while an invalidation is swept: what changes later than that is taken for stored later.
open()
if meta.closing then return 0 end
local n = at(ARGV[2], ARGV[3])
local r = n and row(n)
if not holds(r) or r.i ~= ARGV[1] then return 0 end
call('HSET', K('row', n), 'x', ARGV[4])
call('ZADD', K('expiring'), ARGV[4], n)
local end_ms = math.floor(now_us() / 1000 + math.max(0, tonumber(ARGV[5])) * 1000 + GRACE_MS)
call('ZADD', K('ending'), whole(end_ms), n)
call('PEXPIREAT', K('entry', pair(r.p, r.k)), whole(end_ms))
return whole(changed(n, r))
