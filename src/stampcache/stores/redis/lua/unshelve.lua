-- Removes records; tells of each whether it was there. ARGV: shelf, names.
open()
local there = {}
for at = 2, #ARGV do there[at - 1] = drop_record(ARGV[1], ARGV[at]) and 1 or 0 end
return there
