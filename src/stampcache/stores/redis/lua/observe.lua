-- Adds what was seen of sources. ARGV: now, least seconds between two changes, then for each: name of
-- what is compared, name of what is announced, changed ('1' or '0'), seconds ('' where announced).
open()
local now = tonumber(ARGV[1])
local function read(name)
  local found = call('HMGET', K('observed'), name .. '#n', name .. '#s', name .. '#a')
  if not found[1] then return nil end
  return {tonumber(found[1]), tonumber(found[2]), tonumber(found[3])}
end
local function write(name, seen)
  call('HSET', K('observed'), name .. '#n', whole(seen[1]), name .. '#s', string.format('%.17g', seen[2]),
    name .. '#a', string.format('%.17g', seen[3]))
end
for at = 3, #ARGV, 4 do
  local compared, announced = ARGV[at], ARGV[at + 1]
  if ARGV[at + 3] ~= '' then
    local seen = read(compared) or {0, 0, now}
    write(compared, {seen[1] + tonumber(ARGV[at + 2]), seen[2] + tonumber(ARGV[at + 3]), seen[3]})
  else
    local known = read(announced)
    local since = known or read(compared)
    if not (known and now - known[3] < tonumber(ARGV[2])) then
      local total = known or {0, 0, 0}
      if since then total = {total[1] + 1, total[2] + math.max(0, now - since[3]), 0} end
      write(announced, {total[1], total[2], now})
    end
  end
end
