-- Deletes this very entry. ARGV: id, partition, key.
open()
local n = at(ARGV[2], ARGV[3])
local r = n and row(n)
if not r or r.i ~= ARGV[1] then return 0 end
return drop_all({n})
