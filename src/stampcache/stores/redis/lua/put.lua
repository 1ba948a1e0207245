-- Stores an entry, unless something came after its fence: then says what, for who can judge it.
-- ARGV: what stands beside the body (MessagePack), body, vector, reach.
open()
local new = cmsgpack.unpack(ARGV[1])
if tonumber(new.fence) < meta.floor or tonumber(new.fence) > meta.seq then return {'forgotten'} end
local seen = new.judged ~= '' and new.judged or new.fence
local reached = new.reached == '1'
local since = changes_after(seen, reached and new.corpus)
if since == FORGOTTEN then return {'forgotten'} end
local written = reached and call('EXISTS', K('intents', new.corpus)) or 0
if #since[1] > 0 then return {'changes', whole(meta.seq), since[1], since[2], written} end
if written == 1 then return {'written'} end

write_uses(new.hits, new.servings)
local spot = pair(new.p, new.k)
local before = call('HGET', K('at'), spot)
if before then
  local r = row(before)
  if r then drop(before, r) end
end
local same = by_id(new.i)
if same then
  local r = row(same)
  if r then
    log(r)
    drop(same, r)
  end
end

local n = whole(call('HINCRBY', K('meta'), 'rows', 1))
local r = {p = new.p, k = new.k, i = new.i, s = new.s, t = new.t, a = tonumber(new.a), h = 0, m = '',
  st = cmsgpack.pack(new.st), dp = cmsgpack.pack(new.dp), rc = false}
local seq = log(r)
call('HSET', K('row', n), 'p', r.p, 'k', r.k, 'i', r.i, 's', r.s, 't', r.t, 'a', new.a, 'h', '0', 'm', '',
  'q', whole(seq), 'st', r.st, 'dp', r.dp, 'x', new.x, 'd', new.d, 'c', new.c)
call('HSET', K('at'), spot, n)
call('HSET', K('ids'), r.i, n)
call('SET', K('entry', spot), header(AS_IS, seq) .. ARGV[2])
if new.x ~= '' then
  call('ZADD', K('expiring'), new.x, n)
  local end_ms = math.floor(now_us() / 1000 + math.max(0, tonumber(new.life)) * 1000 + GRACE_MS)
  call('ZADD', K('ending'), whole(end_ms), n)
  call('PEXPIREAT', K('entry', spot), whole(end_ms))
end
call('ZADD', K('scope', r.s), n, n)
call('ZADD', K('tenant', r.t), n, n)
call('SADD', K('partitions', r.t), r.p)
post(n, r)
use(n)
if ARGV[3] ~= '' then call('HSET', K('near', r.p), r.k, ARGV[3]) end
count(r.s, 1, ARGV[3] ~= '' and 1 or 0, r.a, 0, 0)

if reached then
  call('HSET', K('row', n), 'rc', new.corpus, 'rs', new.settings, 'r', ARGV[4])
  call('ZADD', K('reaches', new.corpus), whole(seq), n)
  call('ZADD', K('settings', pair(new.corpus, new.settings)), 0, r.i)
  call('HINCRBY', K('corpus', new.corpus), 'version', 1)
  for _, one in ipairs(new.doubts) do
    if call('HEXISTS', K('chunks', new.corpus), one) == 1 then call('SADD', K('doubts', new.corpus), one) end
  end
end

local over = call('ZCARD', K('used')) + call('ZCARD', K('stale')) - tonumber(new.capacity)
local evicted = 0
while evicted < over do
  local first = call('ZRANGE', K('stale'), 0, 0)[1] or call('ZRANGE', K('used'), 0, 0)[1]
  evicted = evicted + drop_all({first})
  over = call('ZCARD', K('used')) + call('ZCARD', K('stale')) - tonumber(new.capacity) + evicted
end
reap()
return {'stored', whole(seq), evicted, whole(meta.seq), whole(meta.floor)}
