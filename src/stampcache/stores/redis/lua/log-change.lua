-- Logs a change. ARGV: corpus, body. Returns the number of the last row.
open()
log_change(ARGV[1], ARGV[2])
return call('HGET', K('meta'), 'rows') or '0'
