-- Answers in reach, as {row, mark, differences}; those that are gone are left out. ARGV: corpus, rows.
local found = {}
for place = 2, #ARGV do
  local r = call('HMGET', K('row', ARGV[place]), 'rc', 'm', 'df', 'p', 'k')
  if r[1] == ARGV[1] then found[#found + 1] = {ARGV[place], r[2], r[3] or '', r[4], r[5]} end
end
return found
