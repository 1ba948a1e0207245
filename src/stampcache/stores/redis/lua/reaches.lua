-- Reaches stored after a sequence, as {row, sequence, reach}. ARGV: corpus, sequence, how many.
local found = {}
local rows = call('ZRANGEBYSCORE', K('reaches', ARGV[1]), '(' .. ARGV[2], '+inf', 'LIMIT', 0, ARGV[3])
for _, n in ipairs(rows) do
  found[#found + 1] = {n, call('ZSCORE', K('reaches', ARGV[1]), n), call('HGET', K('row', n), 'r') or ''}
end
return found
