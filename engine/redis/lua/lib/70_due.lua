-- What time alone does, a bounded amount of it for each call.

-- timeOut does what a job's own times ask for: retention, expiry, deadline.
local function timeOut(q, id)
  local j = load(q, id)
  if not j then return end
  if j.final then
    keepAsNode(q, id, j)
    local k = keeps(j)
    if (j.final == 'dead' and k.deadAge or k.age) > 0 then
      if j.final == 'dead' then note(q, id, j, 'discarded', '', 'x', 'kept as long as its retention says: age') end
      forget(q, id, j)
    end
    return
  end
  local active = call('ZSCORE', q.f .. 'l', id)
  if not active and j.d == 0 and j.expires > 0 and j.expires <= NOW then
    finish(q, id, j, 'expired', { text = 'not begun in time', cause = causeOf(j, '{"code":"expired","message":"not begun in time"}') })
  elseif late(j) then
    if not active then tooLate(q, id, j, false) end -- the end of an active one's lease looks again
  elseif j.deadline > 0 then
    call('ZADD', q.f .. 'x', j.deadline, id)
  end
end

-- age lets completed ones leave whose age has come, in the order in which they ended. Of those
-- that it looks at, some are kept for longer, or by Node.
local function age(q, most)
  for old, from in pairs(agesOf(q)) do
    local some = call('ZRANGEBYSCORE', q.p .. 'completed', '(' .. scoreText(from), scoreText(NOW - old + 0.999), 'WITHSCORES', 'LIMIT', 0, most)
    local to = from
    for i = 1, #some, 2 do
      local score, j = tonumber(some[i + 1]), load(q, some[i])
      -- Others may have the score at which a full page ends: those are looked at next.
      if #some < 2 * most or score < tonumber(some[#some]) or tonumber(some[2]) == score then to = score end
      if j and j.final then
        keepAsNode(q, some[i], j)
        if keeps(j).age == old then forget(q, some[i], j) end
      end
    end
    if to > from then leave(q, old, to) end
  end
end

-- advance brings a queue up to now.
local function advance(q, most)
  -- The last first, since each goes before the others.
  local ended = call('ZRANGEBYSCORE', q.f .. 'l', '-inf', NOW, 'LIMIT', 0, most)
  for i = #ended, 1, -1 do lapse(q, ended[i]) end
  local due = call('ZRANGEBYSCORE', q.delayed, 0, NOW * 4096 + 4095, 'LIMIT', 0, most)
  for _, id in ipairs(due) do
    call('ZREM', q.delayed, id)
    local j = load(q, id)
    if j then
      call('HSET', q.p .. id, 'delay', 0)
      enqueue(q, id, j, j.d > 0 or j.atm > 0, 'delayed')
    end
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', q.f .. 'd', '-inf', NOW, 'LIMIT', 0, most)) do
    call('ZREM', q.f .. 'd', id)
    local j = load(q, id)
    if j then
      call('HSET', q.p .. id, 'delay', 0)
      enqueue(q, id, j, false, 'delayed')
    end
  end
  for _, id in ipairs(call('ZRANGEBYSCORE', q.f .. 'x', '-inf', NOW, 'LIMIT', 0, most)) do
    call('ZREM', q.f .. 'x', id)
    timeOut(q, id)
  end
  age(q, most)
  for _, at in ipairs(call('ZRANGEBYSCORE', q.f .. 'rr', '-inf', NOW, 'LIMIT', 0, most)) do
    local l = string.match(at, '\n(.*)$')
    call('ZREM', q.f .. 'rr', at)
    unblock(q, l)
  end
end

local function hasPlain(q) return call('LLEN', q.wait) > 0 or call('ZCARD', q.prio) > 0 end

local function hasLanes(q) return call('EXISTS', q.f .. 't:') == 1 or call('EXISTS', q.f .. 'turn') == 1 end

-- measure counts what has ended by the minute, for BullMQ's getMetrics: in a hash how many
-- there have been, and how many when the last minute began; in a list the minutes, newest
-- first. They are on where the settings say so, or a Node worker has begun them.
local function measure(q)
  local completed, failed = q.p .. 'metrics:completed', q.p .. 'metrics:failed'
  if METRICS == 0 and call('EXISTS', completed, failed) == 0 then return end
  local ended = { [completed] = 0, [failed] = 0 }
  for state, n in pairs(q.count) do
    local key = state == 'completed' and completed or failed
    ended[key] = ended[key] + n
  end
  local most = METRICS > 0 and METRICS or 20160
  for key, n in pairs(ended) do
    local before = n > 0 and call('HINCRBY', key, 'count', n) - n
    local v = before and call('HMGET', key, 'prevTS', 'prevCount')
    local minutes = v and v[1] and math.min(math.floor(NOW / 60000) - math.floor(v[1] / 60000), most) or 0
    if v and not v[1] then
      call('HSET', key, 'prevTS', NOWS, 'prevCount', 0)
    elseif minutes > 0 then
      local points = { int(before - tonumber(v[2] or 0)) }
      for i = 2, minutes do points[i] = '0' end
      inParts('LPUSH', key .. ':data', points)
      call('LTRIM', key .. ':data', 0, most - 1)
      call('HSET', key, 'prevTS', NOWS, 'prevCount', int(before))
    end
  end
end

-- done ends a script: it wakes whoever should look again, and notes when time will
-- do something next. It gives that time, of all queues; 0: never.
local function done()
  for _, q in ipairs(touched) do
    unload(q)
    if q.count then measure(q) end
    if q.unlisted then inParts('ZREM', q.f .. 'j', q.unlisted) end
    if q.listed then inParts('ZADD', q.f .. 'j', q.listed) end
    if q.added then
      call('INCRBY', q.p .. 'id', q.added)
      call('SADD', G .. 'q', q.name)
    end
    local delayed = noteDue(q)
    if q.wakeDelay and delayed then call('ZADD', q.p .. 'marker', delayed / 4096, '1') end
    local freed = q.freed and q.most
    if (q.wakePlain or q.wakeLane or freed) and not stopped(q) then
      if (q.wakePlain or freed) and hasPlain(q) then call('ZADD', q.p .. 'marker', 0, '0') end
      if (q.wakeLane or freed) and hasLanes(q) then call('ZADD', q.f .. 'marker', 0, '0') end
    end
    if q.ended and call('LLEN', q.wait) == 0 and call('LLEN', q.active) == 0 and call('ZCARD', q.prio) == 0 then
      call('XADD', q.events, '*', 'event', 'drained')
    end
  end
  writeNotes()
  return nextOfAll()
end

-- counts tells what ended by itself or otherwise, for whoever counts since its opening.
local function counts()
  local out = {}
  for _, q in ipairs(touched) do
    if q.count then
      for state, n in pairs(q.count) do
        out[#out + 1] = q.name
        out[#out + 1] = state
        out[#out + 1] = n
      end
    end
  end
  return out
end
