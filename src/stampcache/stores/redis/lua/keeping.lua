-- What verdicts and shelves share with forgetting: how one is deleted; each returns its bytes.
local function drop_verdict(number)
  local bytes = call('HSTRLEN', K('verdict-bodies'), number)
  local id = call('HGET', K('verdict-ids'), number)
  local tenant = call('HGET', K('verdict-tenants'), number)
  if id and call('HGET', K('verdict-latest'), id) == number then call('HDEL', K('verdict-latest'), id) end
  if tenant then
    call('SREM', K('verdicts-of', tenant), number)
    call('HDEL', K('verdict-tenants'), number)
  end
  call('ZREM', K('verdicts'), number)
  call('HDEL', K('verdict-ids'), number)
  call('HDEL', K('verdict-bodies'), number)
  return bytes
end

local function drop_record(shelf, name)
  local bytes = call('HSTRLEN', K('shelf', shelf), name)
  if call('ZREM', K('shelf-order', shelf), name) == 0 then return nil end
  local tenant = call('HGET', K('shelf-tenants', shelf), name)
  if tenant then
    call('SREM', K('shelved', tenant), cmsgpack.pack({shelf, name}))
    call('HDEL', K('shelf-tenants', shelf), name)
  end
  call('HDEL', K('shelf', shelf), name)
  return bytes
end
