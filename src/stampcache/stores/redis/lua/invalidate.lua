-- Makes stale what a selector touches: from now on nothing of it is served; marks some.
-- ARGV: selector, its mark, its body, corpus, how many. {how many held until now, name of the sweep or ''}
open()
local seq = whole(log_change(ARGV[4], ARGV[3]))
local sweep = {selector = ARGV[1], mark = ARGV[2], last = call('HGET', K('meta'), 'rows') or '0',
  places = places_of(cmsgpack.unpack(ARGV[1])), server = meta.server, at = 1, cursor = '0', held = 0,
  touched_ms = math.floor(now_us() / 1000)}
local told = sweep_on(seq, sweep, tonumber(ARGV[5]))
if told[2] ~= '' then
  call('HSET', K('closing'), seq, ARGV[3])
  call('HSET', K('meta'), 'closing', '1')
  tick()
end
reap()
return told
