-- The hold of a delivery: its lock has the token, and its lease has not run out.

local function holds(q, id, token)
  if call('GET', q.p .. id .. ':lock') ~= token then return false end
  local til = tonumber(call('ZSCORE', q.f .. 'l', id))
  return til ~= nil and til > NOW
end

-- lock gives a lease. n, from 1, orders those of one call: the last ms of the lease has
-- them as its parts, so that it ends with its last whole ms for all of them.
local function lock(q, id, token, lease, n)
  call('SET', q.p .. id .. ':lock', token, 'PX', lives(lease))
  call('ZADD', q.f .. 'l', NOW + lease - 1 + n / 4096, id)
end

-- unmark takes a job back from among the finished, where somebody else let it wait again.
local function unmark(q, id, j)
  if j.dead then undead(q, id, j.dead) end
  if j.final == 'cancelled' or j.final == 'expired' then call('HINCRBY', q.f .. 's', j.final, -1) end
  call('ZREM', q.f .. 'e', id)
  call('HDEL', q.p .. id, 'fbz', 'fbq', 'fbu')
  j.final, j.dead = nil, nil
  lists(q, id, j)
end

-- haunts takes one from the dead letters that a Node client has retried or removed.
local function haunts(q, id, seq)
  local j = load(q, id)
  if j and j.dead then unmark(q, id, j) else undead(q, id, seq) end
end

-- found is load; what a Node client has retried since it ended, as bull-board does, waits.
local function found(q, id)
  local j = load(q, id)
  if j and j.final then
    unload(q)
    if not call('ZSCORE', q.p .. (j.final == 'completed' and 'completed' or 'failed'), id) then unmark(q, id, j) end
  end
  return j
end

-- find gives the queue of an id: by our record, else where the caller guesses that a
-- Node job is.
local function find(id, guessQueue, guessID)
  local r = record(G .. 'i:' .. id)
  if r then
    local q = queue(r.queue)
    return q, id, found(q, id), r
  end
  if guessQueue ~= '' then
    local q = queue(guessQueue)
    local j = found(q, guessID)
    if j and not j.ours then return q, guessID, j, nil end
  end
end

-- unfinished counts what waits, is delayed or is active.
local function unfinished(q)
  return call('LLEN', q.wait) + call('LLEN', q.p .. 'paused') + call('ZCARD', q.prio) + call('ZCARD', q.delayed)
    + call('ZCARD', q.p .. 'waiting-children') + call('LLEN', q.active) + call('ZCARD', q.f .. 'p') + call('ZCARD', q.f .. 'd')
end

-- adoptOne gives a number to a job that a Node worker let fail for good, so that it is
-- listed as a dead letter.
local function adoptOne(q, id, at)
  local j = load(q, id)
  if not j or j.final then return end
  local why = call('HGET', q.p .. id, 'failedReason') or 'failed'
  local seq = int(call('INCR', G .. 'n'))
  call('ZADD', q.f .. 'dead', seq, id)
  call('ZADD', G .. 'dead', seq, q.name .. ':' .. id)
  call('HSET', q.p .. id, 'fbz', 'dead', 'fbq', seq, 'fbu',
    int(j.atm) .. '|' .. (j.begun or '0') .. '|' .. at .. '|' .. cjson.encode({ code = 'handler', message = why }))
end

-- adopt does so for all of a queue. Each failed job is looked at once.
local function adopt(q)
  local from = call('HGET', q.f .. 's', 'adopted') or '-inf'
  local ids = call('ZRANGEBYSCORE', q.p .. 'failed', from, '+inf', 'WITHSCORES', 'LIMIT', 0, 100)
  for i = 1, #ids, 2 do
    adoptOne(q, ids[i], ids[i + 1])
    if #ids == 200 or ids[i + 1] ~= from then call('HSET', q.f .. 's', 'adopted', ids[i + 1]) end
  end
end
