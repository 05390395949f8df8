-- The ends of a job, and what leaves after its end.

local kept = {} -- by their text: most jobs of a script are kept alike
local function keeps(j)
  local k = kept[j.keep or '']
  if not k then
    local v = {}
    for s in string.gmatch(j.keep or '', '[^,]+') do v[#v + 1] = tonumber(s) end
    k = { age = v[1] or 0, count = v[2] or 0, none = v[3] == 1, deadAge = v[4] or 0, deadCount = v[5] or 0, noDead = v[6] == 1 }
    kept[j.keep or ''] = k
  end
  return k
end

-- keepAsNode takes over how long a Node producer wants a job kept: removeOnComplete and
-- removeOnFail are true, a number, or an age in seconds and a number; none: for ever.
local function keepAsNode(q, id, j)
  local opts = not j.ours and call('HGET', q.p .. id, 'opts') or ''
  if not string.find(opts, '"removeOn', 1, true) then return end
  local o = cjson.decode(opts)
  local function read(v)
    if type(v) ~= 'table' then v = { count = v == true and 0 or tonumber(v) } end
    local age, count = tonumber(v.age) or 0, tonumber(v.count)
    return int(math.ceil(math.max(age, 0) * 1000)) .. ',' .. int(math.max(count or 0, 0)), count == 0 and '1' or '0'
  end
  local ok, none = read(o.removeOnComplete)
  local dead, noDead = read(o.removeOnFail)
  j.keep = ok .. ',' .. none .. ',' .. dead .. ',' .. noDead
end

local function delKeys(q, id)
  local k = q.p .. id
  call('DEL', k, k .. ':lock', k .. ':logs', k .. ':dependencies', k .. ':processed', k .. ':failed', k .. ':unsuccessful')
end

-- undead takes a dead letter from the lists of them. Those that have been grouped by
-- their cause (deadput.lua) are counted by group:
--
--   ::fb:di       the group of a number
--   ::fb:dm:<g>   the numbers of a group       ::fb:dg:<g>  what it is about
--   ::fb:dn       groups by the newest number that they have had    ::fb:dc  by how many
local function undead(q, id, seq)
  call('ZREM', q.f .. 'dead', id)
  call('ZREM', G .. 'dead', q.name .. ':' .. id)
  local g = call('HGET', G .. 'di', seq)
  if not g then return end
  call('HDEL', G .. 'di', seq)
  call('ZREM', G .. 'dm:' .. g, seq)
  local n = call('ZCARD', G .. 'dm:' .. g)
  if n > 0 then
    call('ZADD', G .. 'dc', n, g)
  else
    call('DEL', G .. 'dg:' .. g)
    call('ZREM', G .. 'dn', g)
    call('ZREM', G .. 'dc', g)
  end
end

-- forget drops a finished job and all that is known of it.
local function forget(q, id, j)
  call('ZREM', q.p .. 'completed', id)
  call('ZREM', q.p .. 'failed', id)
  call('ZREM', q.f .. 'f', id)
  call('ZREM', q.f .. 'x', id)
  if j.dead then undead(q, id, j.dead) end
  if j.final == 'cancelled' or j.final == 'expired' then call('HINCRBY', q.f .. 's', j.final, -1) end
  delKeys(q, id)
  fade(G .. 'i:' .. id, id)
  if j.key then keyFades(q, id, j) end
end

-- A finished job whose id is sent again, past its window, is told of no more while the
-- new one is there. If that leaves no record (it is purged, discarded or not to be kept),
-- the old one is told of again: until then its id ends with %~.
local function rename(q, from, to)
  for _, set in ipairs({ q.p .. 'completed', q.p .. 'failed', q.f .. 'f', q.f .. 'x' }) do
    local score = call('ZSCORE', set, from)
    if score then
      call('ZREM', set, from)
      call('ZADD', set, score, to)
    end
  end
  call('RENAME', q.p .. from, q.p .. to)
  if call('EXISTS', q.p .. from .. ':logs') == 1 then call('RENAME', q.p .. from .. ':logs', q.p .. to .. ':logs') end
end

local function retire(q, id)
  local older = load(q, id .. '%~')
  if older then forget(q, id .. '%~', older) end
  rename(q, id, id .. '%~')
end

local function revive(q, id)
  if call('EXISTS', q.p .. id .. '%~') == 0 then return end
  rename(q, id .. '%~', id)
  if call('PERSIST', G .. 'i:' .. id) == 0 and call('EXISTS', G .. 'i:' .. id) == 0 then
    call('SET', G .. 'i:' .. id, '0||' .. q.name .. '|')
  end
end

-- thin drops what a bound on the number of kept ones lets go of, a few each time.
local function thin(q, set, count, field, most)
  local beyond = call('ZREVRANGE', set, count, count + (most or 9))
  for i, id in ipairs(beyond) do
    local j = load(q, id)
    if j then
      local most = keeps(j)[field]
      if most > 0 and count + i > most then
        if j.final == 'dead' then note(q, id, j, 'discarded', '', 'x', 'kept as long as its retention says: count') end
        forget(q, id, j)
      end
    else
      call('ZREM', set, id)
    end
  end
end

-- thinNode is thin for jobs of Node producers, as BullMQ does it: all of them beyond the
-- number leave, whoever finished them. Ours among them have their own bounds.
local function thinNode(q, set, count)
  local beyond = call('ZCARD', set) - count
  if beyond <= 0 then return end
  for _, id in ipairs(call('ZRANGE', set, 0, math.min(beyond, 100) - 1)) do
    local j = load(q, id)
    if j and not j.ours then forget(q, id, j) end
  end
end

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
  if k.deadCount > 0 and j.ours then thin(q, q.f .. 'dead', k.deadCount, 'deadCount') end
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
    q.shelf = { completed = {}, failed = {}, f = {}, x = {}, counts = {} }
    q.number = tonumber(call('HGET', q.f .. 's', 'f') or 0)
  end
  q.number = q.number + 1
  later(q.shelf[set], NOWS, id)
  later(q.shelf.f, int(q.number), id)
  call('HSET', q.p .. id, ...)
  if k.age > 0 then later(q.shelf.x, int(NOW + k.age), id) end
  if k.count > 0 and not j.ours then q.shelf.node = k.count end
  if k.count > 0 and j.ours then q.shelf.counts[k.count] = (q.shelf.counts[k.count] or 0) + 1 end
end

-- unload puts on the shelf what a script has finished, and ends the holds of it.
function unload(q)
  local s = q.shelf
  if s then
    q.shelf = nil
    call('HSET', q.f .. 's', 'f', int(q.number))
    inParts('ZADD', q.p .. 'completed', s.completed)
    inParts('ZADD', q.p .. 'failed', s.failed)
    inParts('ZADD', q.f .. 'f', s.f)
    inParts('ZADD', q.f .. 'x', s.x)
    if s.node then thinNode(q, q.p .. 'completed', s.node) end
    for count, n in pairs(s.counts) do thin(q, q.f .. 'f', count, 'count', n + 9) end
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
