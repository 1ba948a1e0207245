-- Writes down uses. ARGV: hits and servings (MessagePack).
open()
local told = cmsgpack.unpack(ARGV[1])
write_uses(told.hits, told.servings)
reap()
