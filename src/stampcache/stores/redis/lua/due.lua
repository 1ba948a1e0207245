-- What waits to be looked after, as {id, partition, key, scope, doubted from when, early}, and how much.
-- ARGV: epoch seconds, how many are told.
open()
local found, count = {}, 0
for _, n in ipairs(call('ZRANGE', K('due-order'), 0, -1)) do
  local r = row(n)
  local beside = call('HMGET', K('row', n), 'd', 'x')
  local due = call('HMGET', K('due', n), 'at', 'scope', 'early')
  local lives = not beside[2] or beside[2] == '' or tonumber(beside[2]) > tonumber(ARGV[1])
  if holds(r) and lives and due[1] == beside[1] then
    count = count + 1
    if count <= tonumber(ARGV[2]) then found[count] = {r.i, r.p, r.k, due[2], due[1], due[3]} end
  end
end
return {count, found}
