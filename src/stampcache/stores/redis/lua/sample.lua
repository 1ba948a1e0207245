-- Addresses of entries that hold, by id, after an id and then from the beginning.
-- ARGV: corpus, settings, after, how many.
open()
local found = {}
local function take(from, to)
  for _, id in ipairs(call('ZRANGEBYLEX', K('settings', pair(ARGV[1], ARGV[2])), from, to)) do
    if #found == tonumber(ARGV[4]) then return end
    local n = by_id(id)
    local r = n and row(n)
    if holds(r) then found[#found + 1] = {r.p, r.k, id} end
  end
end
take('(' .. ARGV[3], '+')
if ARGV[3] ~= '' then take('-', '[' .. ARGV[3]) end
return found
