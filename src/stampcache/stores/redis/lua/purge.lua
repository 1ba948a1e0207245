-- Deletes some of what is stale or has expired. ARGV: epoch seconds, how many. {gone, looked at}
open()
local rows = call('ZRANGE', K('stale'), 0, ARGV[2] - 1)
for _, n in ipairs(call('ZRANGEBYSCORE', K('expiring'), '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])) do
  rows[#rows + 1] = n
end
return {drop_all(rows), #rows}
