-- Gives a ticket back and says how it ended; one who only lets go says nothing, and so does one who does not
-- have it any more: nobody waits for it, and its tenant may be forgotten.
-- ARGV: tenant, name, token, end, how long that is told (ms).
local key = ticket_key(ARGV[1], ARGV[2])
if call('GET', key) ~= ARGV[3] then return end
call('DEL', key)
call('ZREM', K('makings', ARGV[1]), key)
if ARGV[4] == '' then return end
local told = end_key(ARGV[1], ARGV[3])
call('SET', told, ARGV[4], 'PX', ARGV[5])
list_making(ARGV[1], told, ARGV[5])
