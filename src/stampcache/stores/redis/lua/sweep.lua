-- Goes on with a sweep, if nobody has who brings it to its end for so long. ARGV: its name, how many,
-- milliseconds; 0 by who brings it to its end. Others only help, so that none of them waits for another.
-- The clock of another server may be behind.
-- {how many held until now, of all that were marked so far; its name, or '' at the end}
open()
local raw = call('HGET', K('sweeps'), ARGV[1])
if not raw then return {tonumber(call('GET', K('swept', ARGV[1])) or '0'), ''} end
local sweep = cmsgpack.unpack(raw)
local now_ms = math.floor(now_us() / 1000)
if math.abs(now_ms - sweep.touched_ms) < tonumber(ARGV[3]) then return {sweep.held, ARGV[1]} end
if ARGV[3] == '0' then sweep.touched_ms = now_ms end
local told = sweep_on(ARGV[1], sweep, tonumber(ARGV[2]))
reap()
return told
