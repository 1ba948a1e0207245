-- Notes something of a watched corpus. ARGV: corpus, then fields and values.
open()
if not is_watched(ARGV[1]) then return 0 end
call('HSET', K('corpus', ARGV[1]), unpack(ARGV, 2))
restand(ARGV[1])
return 1
