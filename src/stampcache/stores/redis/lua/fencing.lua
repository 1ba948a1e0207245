-- What was logged after a sequence, for who decides whether a fill comes too late:
-- {sequence of the last change, bodies and sequences, chunks added to the corpus}.
local FORGOTTEN = 'forgotten'

local function changes_after(fence, corpus)
  local found = {}
  for _, name in ipairs(call('ZRANGEBYSCORE', K('changed'), '(' .. fence, '+inf')) do
    local stream = K('changes', name)
    local floor = call('HGET', K('floors'), stream)
    if floor and tonumber(fence) < tonumber(floor) then return FORGOTTEN end
    for _, item in ipairs(call('XRANGE', stream, '(' .. fence .. '-0', '+')) do
      found[#found + 1] = item[1]
      found[#found + 1] = item[2][2]
    end
  end
  local chunks = {}
  if corpus and #found > 0 then
    local ids = call('ZRANGEBYSCORE', K('chunk-order', corpus), '(' .. fence, '+inf')
    for _, id in ipairs(ids) do chunks[#chunks + 1] = call('HGET', K('chunks', corpus), id) end
  end
  return {found, chunks}
end
