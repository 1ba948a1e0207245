-- Takes a ticket, or says who has it. ARGV: name, token, lease in milliseconds.
local key = K('ticket', ARGV[1])
if call('SET', key, ARGV[2], 'NX', 'PX', ARGV[3]) then return ARGV[2] end
return call('GET', key)
