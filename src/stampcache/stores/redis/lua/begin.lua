-- Writes down an intent. ARGV: corpus, now, trace of the unknown, id, intent.
open()
know(ARGV[1], ARGV[2], ARGV[3])
call('HSET', K('intents', ARGV[1]), ARGV[4], ARGV[5])
call('HINCRBY', K('corpus', ARGV[1]), 'version', 1)
restand(ARGV[1])
