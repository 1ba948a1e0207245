-- Adds to lasting counters. ARGV: names and numbers by turns.
for at = 1, #ARGV, 2 do call('HINCRBY', K('tallies'), ARGV[at], ARGV[at + 1]) end
