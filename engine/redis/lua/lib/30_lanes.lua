-- Lanes hold what waits and has a chain (a group, or a key of which the last is
-- kept), a limit key or a tenant. BullMQ knows none of these, so they wait in keys of
-- ours and no Node worker takes one of them against its rule. Once handed out they
-- are in BullMQ's active list like all others.
--
--   fb:p            all of them that wait, by time of sending
--   fb:g:<chain>    all of a chain that are there, in the order of sending
--   fb:w:<t>\n<l>   what of tenant t and limit key l may be handed out, by rank
--   fb:t:<t>        the limit keys of a tenant that are not held up, by the rank of their first
--   fb:turn         tenants with something in fb:t, by the number of their last turn
--   fb:b:<l>        tenants whose lane of this limit key is held up
--   fb:bl           all lanes that are held up        fb:rr  those that are for a time

local function lane(t, l) return t .. '\n' .. l end

local function noTurn(q, t)
  if t ~= '' and call('ZCARD', q.f .. 't:' .. t) == 0 then call('ZREM', q.f .. 'turn', t) end
end

-- ready makes a lane eligible, by its first, or takes it out when it is empty.
local function ready(q, t, l)
  local head = call('ZRANGE', q.f .. 'w:' .. lane(t, l), 0, 0, 'WITHSCORES')
  if not head[1] then
    call('ZREM', q.f .. 't:' .. t, l)
    noTurn(q, t)
    return
  end
  if l ~= '' and call('SISMEMBER', q.f .. 'b:' .. l, t) == 1 then return end
  call('ZADD', q.f .. 't:' .. t, head[2], l)
  if t ~= '' and not call('ZSCORE', q.f .. 'turn', t) then
    call('ZADD', q.f .. 'turn', call('HINCRBY', q.f .. 's', 'turn', 1), t)
  end
  q.wakeLane = true
end

-- block holds a lane up until somebody unblocks its key, or until a time.
local function block(q, t, l, untilTime)
  call('ZREM', q.f .. 't:' .. t, l)
  noTurn(q, t)
  call('SADD', q.f .. 'b:' .. l, t)
  call('SADD', q.f .. 'bl', lane(t, l))
  if untilTime then call('ZADD', q.f .. 'rr', untilTime, lane(t, l)) end
end

local function unblock(q, l)
  for _, t in ipairs(call('SMEMBERS', q.f .. 'b:' .. l)) do
    call('SREM', q.f .. 'b:' .. l, t)
    call('SREM', q.f .. 'bl', lane(t, l))
    call('ZREM', q.f .. 'rr', lane(t, l))
    ready(q, t, l)
  end
end

local function first(q, g) return call('ZRANGE', q.f .. 'g:' .. g, 0, 0)[1] end

local function toLane(q, id, j)
  j.place = 'w'
  call('HSET', q.p .. id, 'fbp', 'w')
  local t, l = j.t or '', j.l or ''
  call('ZADD', q.f .. 'w:' .. lane(t, l), rank(j), id)
  ready(q, t, l)
end

local function fromLane(q, id, j)
  local t, l = j.t or '', j.l or ''
  call('ZREM', q.f .. 'w:' .. lane(t, l), id)
  ready(q, t, l)
end

-- follow lets the first of a chain come, if it waits behind nothing any more.
local function follow(q, g)
  local id = first(q, g)
  if not id then return end
  if call('HGET', q.p .. id, 'fbp') == 'p' then toLane(q, id, load(q, id)) end
end

-- enqueue lets a job wait. front: it comes again, so it goes before its equals. prev: where
-- it was; moved: it has been waiting before, of which no event tells.
local function enqueue(q, id, j, front, prev)
  if special(j) then
    call('ZADD', q.f .. 'p', j.at, id)
    if j.g and first(q, j.g) ~= id then
      j.place = 'p'
      call('HSET', q.p .. id, 'fbp', 'p')
    else
      toLane(q, id, j)
    end
  elseif j.prio > 0 then
    local n = 0
    if not front then n = call('INCR', q.p .. 'pc') end
    call('ZADD', q.prio, j.prio * 4294967296 + n % 4294967296, id)
    q.wakePlain = true
  else
    call(front and 'RPUSH' or 'LPUSH', q.wait, id)
    q.wakePlain = true
  end
  if prev == 'moved' then return end
  if prev then event(q, 'waiting', id, 'prev', prev) else event(q, 'waiting', id) end
end

-- postpone lets a job be delayed until a time.
local function postpone(q, id, j, due)
  call('HSET', q.p .. id, 'delay', math.max(0, due - NOW))
  if special(j) then
    j.place = 'd'
    call('HSET', q.p .. id, 'fbp', 'd')
    call('ZADD', q.f .. 'd', due, id)
  else
    local top = call('ZREVRANGEBYSCORE', q.delayed, due * 4096 + 4095, due * 4096, 'WITHSCORES', 'LIMIT', 0, 1)
    local score = due * 4096
    if top[2] then score = math.min(tonumber(top[2]) + 1, due * 4096 + 4095) end
    call('ZADD', q.delayed, score, id)
    q.wakeDelay = true
  end
  event(q, 'delayed', id, 'delay', int(due))
end

-- unqueue takes a job out of wherever it waits.
local function unqueue(q, id, j)
  if special(j) then
    if j.place == 'w' then fromLane(q, id, j) end
    call('ZREM', q.f .. 'p', id)
    call('ZREM', q.f .. 'd', id)
    call('HDEL', q.p .. id, 'fbp')
    j.place = nil
  end
  if call('ZREM', q.delayed, id) == 0 and call('ZREM', q.prio, id) == 0 and not special(j) then
    call('LREM', q.wait, 1, id)
  end
end
