-- Goes on with a sweep, if nobody has for so long. ARGV: its name, how many, milliseconds.
-- {how many held until now, of all that were marked so far; its name, or '' at the end}
open()
local raw = call('HGET', K('sweeps'), ARGV[1])
if not raw then return {tonumber(call('GET', K('swept', ARGV[1])) or '0'), ''} end
local sweep = cmsgpack.unpack(raw)
if now_us() / 1000 - sweep.touched_ms < tonumber(ARGV[3]) then return {sweep.held, ARGV[1]} end
local told = sweep_on(ARGV[1], sweep, tonumber(ARGV[2]))
reap()
return told
