-- Deletes some rows of a scope up to a number. ARGV: scope, number, how many. {gone, looked at}
open()
local rows = call('ZRANGEBYSCORE', K('scope', ARGV[1]), '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
local gone = drop_all(rows)
for _, n in ipairs(rows) do call('ZREM', K('scope', ARGV[1]), n) end
return {gone, #rows}
