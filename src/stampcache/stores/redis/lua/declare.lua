-- Watches a corpus. ARGV: corpus, now, silence, trace of the unknown.
open()
know(ARGV[1], ARGV[2], ARGV[4])
call('HSET', K('corpus', ARGV[1]), 'heard', ARGV[2], 'silence', ARGV[3])
restand(ARGV[1])
return standing(ARGV[1])
