-- The ends of a job.

-- drop ends the hold that a lease has. It tells whether the job was active. In a script
-- that leases nothing (q.later is there), the keys of the hold go at its end, all at once.
local function drop(q, id, j)
  if q.later then
    q.over[id] = true
    q.later[#q.later + 1] = id
  else
    call('DEL', q.p .. id .. ':lock')
    call('ZREM', q.f .. 'l', id)
    call('SREM', q.p .. 'stalled', id)
  end
  if j.l then
    call('SREM', q.f .. 'a:' .. j.l, id)
    unblock(q, j.l)
  end
  q.freed = true
  return call('LREM', q.active, -1, id) > 0
end

-- bury makes a dead letter of it.
local function bury(q, id, j, fields)
  local k = keeps(j)
  if k.noDead then return delKeys(q, id) end
  local seq = call('INCR', G .. 'n')
  j.dead = int(seq)
  call('ZADD', q.f .. 'dead', seq, id)
  call('ZADD', G .. 'dead', seq, q.name .. ':' .. id)
  call('ZADD', q.p .. 'failed', NOW, id)
  fields[#fields + 1] = 'fbq'
  fields[#fields + 1] = j.dead
  call('HSET', q.p .. id, unpack(fields))
  if k.deadAge > 0 then call('ZADD', q.f .. 'x', NOW + k.deadAge, id) end
  if k.deadCount > 0 and j.ours then thinDead(q, k.deadCount) end
  if k.deadCount > 0 and not j.ours then thinNode(q, q.p .. 'failed', k.deadCount) end
end

-- shelve keeps a finished job as long as its retention says.
local function shelve(q, id, j, set, ...)
  local k = keeps(j)
  if not j.job or k.none then
    delKeys(q, id)
    fade(G .. 'i:' .. id, id)
    if j.job then revive(q, id) end
    return
  end
  if not q.shelf then
    q.shelf = { completed = {}, failed = {}, e = {}, x = {}, counts = {} }
    agesOf(q)
  end
  q.last = newer(q.last)
  local score = scoreText(q.last)
  later(q.shelf[set], score, id)
  if set == 'failed' then later(q.shelf.e, score, id) end
  call('HSET', q.p .. id, ...)
  if k.age > 0 and (set == 'failed' or not leaves(q, k.age, q.last)) then later(q.shelf.x, int(NOW + k.age), id) end
  if k.count > 0 and not j.ours then q.shelf.node = k.count end
  if k.count > 0 and j.ours then q.shelf.counts[k.count] = (q.shelf.counts[k.count] or 0) + 1 end
end

-- unload puts on the shelf what a script has finished, and ends the holds of it.
function unload(q)
  local s = q.shelf
  if s then
    q.shelf = nil
    call('HSET', q.f .. 's', 'last', scoreText(q.last))
    inParts('ZADD', q.p .. 'completed', s.completed)
    inParts('ZADD', q.p .. 'failed', s.failed)
    inParts('ZADD', q.f .. 'e', s.e)
    inParts('ZADD', q.f .. 'x', s.x)
    if s.node then thinNode(q, q.p .. 'completed', s.node) end
    for count, n in pairs(s.counts) do thinFinished(q, count, n + 9) end
  end
  if q.later and #q.later > 0 then
    local locks = {}
    for i, id in ipairs(q.later) do locks[i] = q.p .. id .. ':lock' end
    inParts('ZREM', q.f .. 'l', q.later)
    inParts('SREM', q.p .. 'stalled', q.later)
    for from = 1, #locks, 2000 do call('DEL', unpack(locks, from, math.min(from + 1999, #locks))) end
    q.later = {}
  end
end

local function counted(q, state)
  q.count = q.count or {}
  q.count[state] = (q.count[state] or 0) + 1
end

-- finish ends a job that waits or is active. state: completed, dead, cancelled or
-- expired. cause: as kept in fbu; text: for people; charge: an attempt failed.
local function finish(q, id, j, state, o)
  local key = q.p .. id
  local ok, charge = state == 'completed', o.charge
  keepAsNode(q, id, j)
  if not drop(q, id, j) then unqueue(q, id, j) end
  if j.expires > 0 or j.deadline > 0 then call('ZREM', q.f .. 'x', id) end
  if j.place then call('HDEL', key, 'fbp') end
  unlists(q, id)
  if j.g then
    call('ZREM', q.f .. 'g:' .. j.g, id)
    follow(q, j.g)
  end
  local value = ok and o.result or o.text
  parentDone(key, j, ok, value)
  local attempt = j.atm + 1
  if j.stop then call('HDEL', key, 'fbc') end
  local fields = { 'finishedOn', NOWS, ok and 'returnvalue' or 'failedReason', value }
  later(fields, 'fbz', ok and o.said and 'completed+' or state)
  if ok and j.job or charge then later(fields, 'atm', int(attempt)) end
  if o.cause then fields[#fields + 1] = 'fbu'; fields[#fields + 1] = o.cause end
  if not ok and j.defa then call('HDEL', key, 'defa') end
  local tell, told = o.cause and 'c' or nil, o.cause
  if ok and o.said and #o.said <= 16384 then tell, told = 'r', o.said end
  note(q, id, j, state, state, tell, told)
  if ok then
    shelve(q, id, j, 'completed', unpack(fields))
    event(q, 'completed', id, 'returnvalue', value, 'prev', 'active')
  elseif state == 'dead' then
    local tries = tonumber(string.match(call('HGET', key, 'opts') or '', '"attempts":(%d+)') or 0)
    bury(q, id, j, fields)
    event(q, 'failed', id, 'failedReason', value, 'prev', 'active')
    if attempt >= tries then event(q, 'retries-exhausted', id, 'attemptsMade', int(attempt)) end
  else
    shelve(q, id, j, 'failed', unpack(fields))
    if j.job and not keeps(j).none then call('HINCRBY', q.f .. 's', state, 1) end
    event(q, 'failed', id, 'failedReason', value, 'prev', 'active')
  end
  keyEnds(q, id, j, state)
  q.ended = true
  counted(q, state)
end

-- causeOf makes what fbu and fbf hold: attempt, its start, when it failed, and JSON.
local function causeOf(j, json)
  return int(j.atm + 1) .. '|' .. (j.begun or '0') .. '|' .. int(NOW) .. '|' .. json
end

local function tooLate(q, id, j, charge)
  local text = 'its deadline has passed'
  finish(q, id, j, 'dead', { text = text, charge = charge,
    cause = causeOf(j, '{"code":"deadline","message":"' .. text .. '"}') })
end

local function stopNow(q, id, j)
  local why = string.sub(j.stop or '!', 2)
  if why == '' then why = 'cancelled on request' end
  finish(q, id, j, 'cancelled', { text = why, cause = causeOf(j, cjson.encode({ code = 'cancelled', message = why })) })
end

local function late(j) return j.deadline > 0 and j.deadline <= NOW end

-- lapse ends a lease without a verdict.
local function lapse(q, id)
  local j = load(q, id)
  if not j then
    call('ZREM', q.f .. 'l', id)
    call('LREM', q.active, -1, id)
    return
  end
  if j.stop then return stopNow(q, id, j) end
  if late(j) then return tooLate(q, id, j, false) end
  if not drop(q, id, j) then return end -- somebody else has taken it back already
  note(q, id, j, 'lease_lost', 'waiting')
  enqueue(q, id, j, true, 'active')
  event(q, 'stalled', id)
end
