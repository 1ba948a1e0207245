-- The latest verdict on an entry. ARGV: id of the entry.
local number = call('HGET', K('verdict-latest'), ARGV[1])
return number and call('HGET', K('verdict-bodies'), number) or ''
