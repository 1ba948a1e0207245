-- Takes a ticket, or says who has it. ARGV: tenant, name, token, lease in milliseconds.
local key = ticket_key(ARGV[1], ARGV[2])
if not call('SET', key, ARGV[3], 'NX', 'PX', ARGV[4]) then return call('GET', key) end
list_making(ARGV[1], key, ARGV[4])
return ARGV[3]
