-- The entry at an address, and the sequence and the era as of which it was read. ARGV: spot.
open()
local found = call('GET', K('entry', ARGV[1]))
return string.format('%016.0f%016.0f', meta.seq, meta.era) .. (found or '')
