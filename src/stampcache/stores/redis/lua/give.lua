-- Gives a ticket back and says how it ended; one who only lets go says nothing.
-- ARGV: name, token, end, how long that is told (ms).
if call('GET', K('ticket', ARGV[1])) == ARGV[2] then call('DEL', K('ticket', ARGV[1])) end
if ARGV[3] ~= '' then call('SET', K('end', ARGV[2]), ARGV[3], 'PX', ARGV[4]) end
