-- The latest verdicts, newest first. ARGV: how many.
local found = {}
for _, number in ipairs(call('ZREVRANGE', K('verdicts'), 0, ARGV[1] - 1)) do
  found[#found + 1] = call('HGET', K('verdict-bodies'), number)
end
return found
