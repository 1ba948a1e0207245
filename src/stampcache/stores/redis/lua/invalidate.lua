-- Makes stale what a selector touches, and logs it. ARGV: selector, its words, its body, corpus.
open()
local held = mark_all(touched({cmsgpack.unpack(ARGV[1])}), ARGV[2])
log_change(ARGV[4], ARGV[3])
reap()
return held
