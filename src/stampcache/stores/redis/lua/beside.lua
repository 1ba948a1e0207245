-- What stands beside the body of an entry. ARGV: spot.
local n = call('HGET', K('at'), ARGV[1])
if not n then return {} end
return call('HMGET', K('row', n), 'i', 'm', 'x', 'd', 'c', 'q')
