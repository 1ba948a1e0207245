-- What the verbs of tickets share. The keys of a tenant's tickets, and of how its makings ended, are listed
-- by when they expire, so that they are found when it is forgotten.
local function ticket_key(tenant, name) return K('ticket', pair(tenant, name)) end
local function end_key(tenant, token) return K('end', pair(tenant, token)) end

local function list_making(tenant, key, life_ms)
  local list, now_ms = K('makings', tenant), math.floor(now_us() / 1000)
  call('ZREMRANGEBYSCORE', list, '-inf', whole(now_ms))
  call('ZADD', list, whole(now_ms + life_ms), key)
  if call('PTTL', list) < tonumber(life_ms) then call('PEXPIRE', list, life_ms) end
end
