-- The reach of an entry. ARGV: id.
local n = by_id(ARGV[1])
return n and call('HGET', K('row', n), 'r') or ''
