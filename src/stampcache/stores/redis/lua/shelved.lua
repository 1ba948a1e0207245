-- The newest records of a shelf as {name, tenant, body}. ARGV: shelf, how many.
local found = {}
for _, name in ipairs(call('ZREVRANGE', K('shelf-order', ARGV[1]), 0, ARGV[2] - 1)) do
  found[#found + 1] = {name, call('HGET', K('shelf-tenants', ARGV[1]), name) or '',
    call('HGET', K('shelf', ARGV[1]), name)}
end
return found
