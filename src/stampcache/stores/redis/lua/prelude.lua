-- What all verbs share. KEYS[1] is the base of all names, which lies in one slot; every other name is
-- made from it. A row is what is kept of an entry beside its body; it has a number, n.
local base = KEYS[1]
local call = redis.call

-- What stands in front of a body: whether more stands beside it, its sequence, and a check of both.
local AS_IS, AMENDED = 'U', 'j'
local function header(flag, seq)
  local check = (seq % 97 + (flag == AMENDED and 41 or 0)) % 97
  return string.format('%s%016.0f%02.0f', flag, seq, check)
end

local LOG_KEPT, LOG_SPARE = 20000, 1000
local GRACE_MS = 86400000
local REAPED_AT_ONCE = 8

local function K(kind, name)
  if name then return base .. kind .. ':' .. name end
  return base .. kind
end

local function whole(number)
  return string.format('%.0f', number)
end

-- Two texts as one, so that no pair of them gives that of another.
local function pair(first, second)
  return #first .. ':' .. first .. second
end

local clock_us
local function now_us()
  if not clock_us then
    local time = call('TIME')
    clock_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  end
  return clock_us
end

local meta = {}

local function tick()
  meta.seq = call('HINCRBY', K('meta'), 'seq', 1)
  return meta.seq
end

local function keep_floor(stream)
  if call('XLEN', stream) > LOG_KEPT + LOG_SPARE then
    call('XTRIM', stream, 'MAXLEN', LOG_KEPT)
    local first = call('XRANGE', stream, '-', '+', 'COUNT', 1)[1][1]
    call('HSET', K('floors'), stream, whole(tonumber(string.match(first, '^%d+')) - 1))
  end
end

-- Tells all replicas that the entry of this row changed; returns the sequence of that.
local function log(r)
  local seq = tick()
  local stream = K('log', r.t)
  call('XADD', stream, whole(seq) .. '-0', 'p', r.p, 'k', r.k, 'u', whole(now_us()))
  call('ZADD', K('active'), whole(seq), r.t)
  keep_floor(stream)
  return seq
end

-- Logs a change that refuses late fills; returns its sequence.
local function log_change(corpus, body)
  local seq = tick()
  local stream = K('changes', corpus)
  call('XADD', stream, whole(seq) .. '-0', 'b', body)
  call('ZADD', K('changed'), whole(seq), corpus)
  keep_floor(stream)
  return seq
end

local function restand(corpus)
  call('ZADD', K('standings'), whole(tick()), corpus)
end

-- Another server, or one that began anew, may have lost what was acknowledged last. So no sequence is
-- used twice, nothing is taken for remembered, and unless the server is said to be durable, nothing that
-- was stored before is served.
local function begin_era(server, certain)
  local before = meta.server
  local floor = math.max((meta.seq or 0) + 1000000, now_us())
  meta.seq, meta.floor = floor, floor
  if not before or certain or not meta.era or call('HGET', K('meta'), 'durable') ~= '1' then meta.era = floor end
  if not before then call('HSETNX', K('meta'), 'rows', whole(floor)) end
  call('HSET', K('meta'), 'seq', whole(floor), 'floor', whole(floor), 'era', whole(meta.era),
    'server', server, 'reaping', '1')
  meta.server = server
  if meta.era == floor then
    -- All that an invalidation was still to mark is served no more; and its own keys may be lost.
    call('DEL', K('closing'), K('sweeps'))
    call('HDEL', K('meta'), 'closing')
    meta.closing = false
  end
  if before and meta.era == floor then
    for _, corpus in ipairs(call('SMEMBERS', K('corpora'))) do
      call('HSET', K('corpus', corpus), 'doubted', whole(floor), 'complete', '0')
      call('HINCRBY', K('corpus', corpus), 'version', 1)
      restand(corpus)
    end
  end
end

-- Every verb begins with this.
local function open()
  local info = call('INFO', 'replication', 'stats')
  local server, evicted = string.match(info, 'master_replid:(%x+)'), string.match(info, 'evicted_keys:(%d+)')
  local found = call('HMGET', K('meta'), 'server', 'seq', 'era', 'floor', 'reaping', 'evicted', 'closing')
  meta.server, meta.reaping, meta.closing = found[1], found[5], found[7]
  meta.seq, meta.era, meta.floor = tonumber(found[2] or nil), tonumber(found[3] or nil), tonumber(found[4] or nil)
  if meta.server ~= server or not meta.seq then
    begin_era(server)
    call('HSET', K('meta'), 'evicted', evicted)
  elseif found[6] ~= evicted then
    -- A server that evicts any key may have taken a mark or a log away.
    if string.match(call('INFO', 'memory'), 'maxmemory_policy:allkeys') then begin_era(server, true) end
    call('HSET', K('meta'), 'evicted', evicted)
  end
end

local FIELDS = {'p', 'k', 'i', 's', 't', 'a', 'h', 'm', 'q', 'st', 'dp', 'rc', 'rs'}

local function row(n)
  local found = call('HMGET', K('row', n), unpack(FIELDS))
  if not found[1] then return nil end
  local r = {}
  for at, name in ipairs(FIELDS) do r[name] = found[at] end
  r.a, r.h, r.q, r.m = tonumber(r.a), tonumber(r.h), tonumber(r.q), r.m or ''
  return r
end

local function at(partition, key)
  return call('HGET', K('at'), pair(partition, key))
end

local function by_id(id)
  return call('HGET', K('ids'), id)
end

-- Whether an entry holds, and nothing that a server lost can have ended it.
local function holds(r)
  return r and r.m == '' and r.q >= meta.era
end

local function count(scope, entries, vectors, bytes, hits, invalidated)
  for _, key in ipairs({K('sizes'), K('size', scope)}) do
    if entries ~= 0 then call('HINCRBY', key, 'entries', entries) end
    if vectors ~= 0 then call('HINCRBY', key, 'vectors', vectors) end
    if bytes ~= 0 then call('HINCRBY', key, 'bytes', whole(bytes)) end
    if hits ~= 0 then call('HINCRBY', key, 'hits', whole(hits)) end
    if invalidated ~= 0 then call('HINCRBY', key, 'invalidated', invalidated) end
  end
end

local function use(n)
  call('ZADD', K('used'), call('HINCRBY', K('meta'), 'uses', 1), n)
end

-- Says in front of the body that something beside it has changed, and when.
local function amend(r, seq)
  local key = K('entry', pair(r.p, r.k))
  if call('EXISTS', key) == 1 then call('SETRANGE', key, 0, header(AMENDED, seq)) end
end

local function changed(n, r)
  local seq = log(r)
  call('HSET', K('row', n), 'q', whole(seq))
  amend(r, seq)
  return seq
end

-- The names of the sets that hold the rows of what an entry depends on and was made with.
local function postings(r)
  local names = {}
  if r.st then
    for place, stamp in ipairs(cmsgpack.unpack(r.st)) do
      if stamp ~= '' then names[K('stamp', place .. ':' .. stamp)] = true end
    end
  end
  if r.dp then
    for _, part in ipairs(cmsgpack.unpack(r.dp)) do
      names[K('cites', part[1])] = true
      names[K('source', pair(part[1], part[2]))] = true
      names[K('chunk', pair(part[1], part[3]))] = true
    end
  end
  return names
end

local function post(n, r)
  for name in pairs(postings(r)) do call('SADD', name, n) end
  for _, part in ipairs(cmsgpack.unpack(r.dp)) do call('SADD', K('cited'), part[1]) end
end

local function forget_reach(n, r)
  if not r.rc then return end
  call('ZREM', K('reaches', r.rc), n)
  call('ZREM', K('settings', pair(r.rc, r.rs)), r.i)
  call('HDEL', K('row', n), 'rc', 'rs', 'r', 'df')
  r.rc = false
end

-- Nothing that changes concerns the entry any more.
local function unpost(n, r)
  for name in pairs(postings(r)) do call('SREM', name, n) end
  if r.dp then
    for _, part in ipairs(cmsgpack.unpack(r.dp)) do
      if call('EXISTS', K('cites', part[1])) == 0 then call('SREM', K('cited'), part[1]) end
    end
  end
  forget_reach(n, r)
  call('HDEL', K('row', n), 'st', 'dp', 'vec')
  r.st, r.dp = false, false
end

-- Takes an entry that holds out of everything that serves and counts it; returns its vector.
local function retire(n, r)
  call('ZREM', K('used'), n)
  local near = K('near', r.p)
  local vector = call('HGET', near, r.k)
  if vector then call('HDEL', near, r.k) end
  count(r.s, -1, vector and -1 or 0, -r.a, -r.h, 0)
  return vector
end

local function make_stale(n, r, change)
  local seq = changed(n, r)
  call('HSET', K('row', n), 'm', change)
  call('ZADD', K('stale'), whole(seq), n)
  count(r.s, 0, 0, 0, 0, 1)
  r.m = change
end

-- Makes an entry stale for good.
local function mark(n, r, change)
  retire(n, r)
  make_stale(n, r, change)
  call('HSET', K('row', n), 'h', '0')
  unpost(n, r)
end

-- Makes an entry stale that may hold again.
local function suspend(n, r, change)
  local vector = retire(n, r)
  make_stale(n, r, change)
  if vector then call('HSET', K('row', n), 'vec', vector) end
end

-- Makes sure that a suspended entry will not hold again.
local function finish(n, r)
  call('HSET', K('row', n), 'h', '0')
  unpost(n, r)
end

local function restore(n, r)
  local vector = call('HGET', K('row', n), 'vec')
  if vector then
    call('HSET', K('near', r.p), r.k, vector)
    call('HDEL', K('row', n), 'vec')
  end
  call('HSET', K('row', n), 'm', '')
  call('ZREM', K('stale'), n)
  use(n)
  count(r.s, 1, vector and 1 or 0, r.a, r.h, -1)
  changed(n, r)
end

-- Deletes an entry and all that is kept of it.
local function drop(n, r)
  if r.m == '' then
    retire(n, r)
  else
    call('ZREM', K('stale'), n)
    count(r.s, 0, 0, 0, 0, -1)
  end
  unpost(n, r)
  local spot = pair(r.p, r.k)
  if call('HGET', K('at'), spot) == n then
    call('HDEL', K('at'), spot)
    call('DEL', K('entry', spot))
  end
  if by_id(r.i) == n then call('HDEL', K('ids'), r.i) end
  call('ZREM', K('scope', r.s), n)
  call('ZREM', K('tenant', r.t), n)
  call('ZREM', K('expiring'), n)
  call('ZREM', K('ending'), n)
  if call('EXISTS', K('scope', r.s)) == 0 then call('DEL', K('size', r.s)) end
  call('ZREM', K('due-order'), n)
  call('DEL', K('row', n), K('due', n))
end

-- A server that evicts may have taken a row away.
local function forget_orphan(n)
  for _, order in ipairs({'used', 'stale', 'expiring', 'ending', 'due-order'}) do call('ZREM', K(order), n) end
end

local function drop_all(rows)
  local gone = 0
  for _, n in ipairs(rows) do
    local r = row(n)
    if r then
      log(r)
      drop(n, r)
      gone = gone + 1
    else
      forget_orphan(n)
    end
  end
  return gone
end

-- Deletes some of what no longer has a body, or was stored before the server lost something.
local function reap()
  drop_all(call('ZRANGEBYSCORE', K('ending'), '-inf', whole(now_us() / 1000), 'LIMIT', 0, REAPED_AT_ONCE))
  if meta.reaping ~= '1' then return end
  local old = 0
  for _, order in ipairs({'used', 'stale'}) do
    for _, n in ipairs(call('ZRANGE', K(order), 0, REAPED_AT_ONCE - 1)) do
      local r = row(n)
      if not r then
        forget_orphan(n)
      elseif r.q < meta.era then
        drop(n, r)
        old = old + 1
      end
    end
  end
  if old == 0 then call('HDEL', K('meta'), 'reaping') end
end

-- Writes down hits, and to which questions entries were served.
local SERVINGS_KEPT = 100000
local function write_uses(hits, servings)
  for _, hit in ipairs(hits) do
    local n = at(hit[1], hit[2])
    local r = n and row(n)
    if r then
      call('HINCRBY', K('row', n), 'h', hit[3])
      if r.m == '' then
        use(n)
        count(r.s, 0, 0, 0, tonumber(hit[3]), 0)
      end
    end
  end
  for _, serving in ipairs(servings) do
    local id, tenant = serving[1], serving[5]
    local packed = cmsgpack.pack({serving[2], serving[3], serving[4]})
    if by_id(id) and call('SADD', K('served', id), packed) == 1 then
      call('SADD', K('served-of', tenant), id)
      call('SADD', K('partitions', tenant), serving[2])
      call('ZADD', K('servings'), call('HINCRBY', K('meta'), 'servings', 1), cmsgpack.pack({id, packed, tenant}))
      if call('ZCARD', K('servings')) > SERVINGS_KEPT then
        local oldest = cmsgpack.unpack(call('ZPOPMIN', K('servings'))[1])
        call('SREM', K('served', oldest[1]), oldest[2])
        if call('EXISTS', K('served', oldest[1])) == 0 then call('SREM', K('served-of', oldest[3]), oldest[1]) end
      end
    end
  end
end
