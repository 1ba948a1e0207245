-- Deletes the entry at an address, unless somebody has written another one since. ARGV: spot, value.
open()
if call('GET', K('entry', ARGV[1])) ~= ARGV[2] then return 0 end
local n = call('HGET', K('at'), ARGV[1])
if n and row(n) then return drop_all({n}) end
return call('DEL', K('entry', ARGV[1]))
