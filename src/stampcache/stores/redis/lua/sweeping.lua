-- An invalidation that touches many entries is closed at once and swept by and by. ``closing`` has its selector
-- for all who read, who then serve nothing that it touches and that was stored before; ``sweeps`` has how
-- far the marks have come, so that anybody can go on. Its name is its sequence in the log of changes.
-- A cursor means something to the server only that gave it: another one begins again, and marks the rest.
local SWEPT_TOLD_MS = 60000

local function end_sweep(seq, held)
  call('HDEL', K('closing'), seq)
  call('HDEL', K('sweeps'), seq)
  if call('EXISTS', K('closing')) == 0 then call('HDEL', K('meta'), 'closing') end
  call('SET', K('swept', seq), held, 'PX', SWEPT_TOLD_MS)
  tick()
end

-- Marks some; returns {how many held until now, of all that were marked so far; its name, or '' at the end}.
local function sweep_on(seq, sweep, count)
  local selector, some, seen = cmsgpack.unpack(sweep.selector), {}, 0
  if sweep.server ~= meta.server then sweep.server, sweep.at, sweep.cursor = meta.server, 1, '0' end
  local last, least = tonumber(sweep.last), math.max(1, math.floor(count / 20))
  while seen < count and sweep.places[sweep.at] do
    local rows
    sweep.cursor, rows = scan(sweep.places[sweep.at], sweep.cursor, count)
    for _, n in ipairs(rows) do
      if n ~= '' and tonumber(n) <= last then some[n] = true end
    end
    seen = seen + math.max(#rows, least)
    if sweep.cursor == '0' then sweep.at = sweep.at + 1 end
  end
  sweep.held = sweep.held + mark_all(touched({selector}, nil, some), sweep.mark)
  if sweep.places[sweep.at] then
    call('HSET', K('sweeps'), seq, cmsgpack.pack(sweep))
    return {sweep.held, seq}
  end
  if call('HEXISTS', K('closing'), seq) == 1 then end_sweep(seq, sweep.held) end
  return {sweep.held, ''}
end
