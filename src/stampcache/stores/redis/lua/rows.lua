-- What rows say, as {partition, key, scope, mark, five stamps}; those that are gone are left out.
-- ARGV: numbers.
open()
local found = {}
for at = 1, #ARGV do
  local r = row(ARGV[at])
  if r and (r.m ~= '' or holds(r)) then
    found[#found + 1] = {r.p, r.k, r.s, r.m, unpack(r.st and cmsgpack.unpack(r.st) or {'', '', '', '', ''})}
  end
end
return found
