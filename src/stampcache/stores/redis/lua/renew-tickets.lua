-- Gives tickets a new lease each; tells of each whether it was still its holder's.
-- ARGV: lease in milliseconds, then tenant, name, token of each.
local held = {}
for at = 2, #ARGV, 3 do
  local key = ticket_key(ARGV[at], ARGV[at + 1])
  local mine = call('GET', key) == ARGV[at + 2]
  if mine then
    call('PEXPIRE', key, ARGV[1])
    list_making(ARGV[at], key, ARGV[1])
  end
  held[#held + 1] = mine and 1 or 0
end
return held
