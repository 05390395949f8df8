-- Receive: what waits is leased.
--
--   wait | prioritized | lane ──▶ active, with a lock and a lease
--
-- First the queue is brought up to now (lib/70_due.lua). Then one after the other:
-- the tenant whose turn it is, and of it the best by priority and age. A job that
-- BullMQ has marked as failed (defa) ends here without being handed out.
--
-- ARGV: queue, most, lease in ms, token (each gets it with a number), worker's name
-- Keys: meta, wait, active, prioritized, pc, limiter, job, lock, marker, events, and
-- our lanes, leases and rates.
-- Gives the deliveries, when time will do something, what ended, now, and when this
-- queue may have something again. A delivery is strings of MessagePack: id, hand-outs,
-- name, data, timestamp, priority, fb, attempts that failed, how data holds the payload;
-- and of one that is not plain also opts, deid, rjk and causes of failures. Its token is
-- the one given with its number.

local q, most, lease, token, worker = queue(arg()), num(), num(), arg(), arg()
advance(q, 200)

local S = call('HMGET', q.f .. 's', 'rc', 'rp', 'rb', 'ka', 'kc', 'kp', 'kb', 'turn0')
local rate = S[1] and { count = tonumber(S[1]), per = tonumber(S[2]), burst = tonumber(S[3]) }
local keyActive = tonumber(S[4] or 0)
local keyRate = S[5] and { count = tonumber(S[5]), per = tonumber(S[6]), burst = tonumber(S[7]) }
local turn0 = tonumber(S[8] or 0)
local again -- when a limit lets something start

-- opens tells when a token bucket lets the next one start. A bucket is one time: when
-- it will be full again.
local function opens(key, r)
  local full = math.max(tonumber(call('GET', key) or 0), NOW)
  return math.ceil(full - (r.burst - 1) * r.per / r.count - 1e-6)
end
local function spend(key, r)
  local full = math.max(tonumber(call('GET', key) or 0), NOW) + r.per / r.count
  call('SET', key, string.format('%.6f', full), 'PX', lives(full - NOW + 1000))
end

local bull = call('HMGET', q.p .. 'meta', 'max', 'duration')
local limiter = q.p .. 'limiter'
local limited = call('EXISTS', limiter) == 1 or bull[1]
-- bullHolds tells whether a limit that a Node client has set holds the queue up.
local function bullHolds()
  local used = tonumber(call('GET', limiter) or 0)
  local limit = not rate and tonumber(bull[1]) or nil
  if used < 9007199254740991 and not (limit and used >= limit) then return false end
  local ttl = call('PTTL', limiter)
  if ttl < 0 then return false end
  again = NOW + math.max(ttl, 1) -- 0 in its last millisecond
  return true
end

local heads -- of the priorities, when there is more than the list
local function plainHead()
  local id = call('LINDEX', q.wait, -1)
  while id and string.sub(id, 1, 2) == '0:' do -- a marker of BullMQ 4
    call('RPOP', q.wait)
    id = call('LINDEX', q.wait, -1)
  end
  return id
end
local function priorityHead(p)
  local top = p > 10 and '+inf' or '(' .. int((p + 1) * 4294967296)
  local id = call('ZRANGEBYSCORE', q.prio, int(p * 4294967296), top, 'LIMIT', 0, 1)[1]
  if not id then return nil end
  local j = load(q, id)
  return { id = id, rank = j and rank(j) or 0 }
end

-- bestPlain gives the best of BullMQ's own list and set: id, its rank, and the priority.
local function bestPlain(alone)
  local id, best, from = plainHead(), nil, 0
  if call('ZCARD', q.prio) > 0 then
    if not heads then
      heads = {}
      for p = 1, 11 do heads[p] = priorityHead(p) end
    end
    alone = false
  end
  if id then
    if alone then return id, 0, 0 end
    local j = load(q, id)
    best = j and rank(j) or 0
  end
  for p = 1, 11 do
    local h = heads and heads[p]
    if h and (not best or h.rank < best) then id, best, from = h.id, h.rank, p end
  end
  return id, best, from
end

local function takePlain(id, from)
  if from == 0 then
    call('RPOP', q.wait)
  else
    call('ZREM', q.prio, id)
    heads[from] = priorityHead(from)
    if call('ZCARD', q.prio) == 0 then call('DEL', q.p .. 'pc') end
  end
end

-- bestLane gives the first of a tenant's best lane that no limit of its key holds up.
local function bestLane(t)
  while true do
    local head = call('ZRANGE', q.f .. 't:' .. t, 0, 0, 'WITHSCORES')
    if not head[1] then return nil end
    local l, open = head[1], true
    if l ~= '' then
      if keyActive > 0 and call('SCARD', q.f .. 'a:' .. l) >= keyActive then
        block(q, t, l)
        open = false
      elseif keyRate then
        local at = opens(q.f .. 'r:' .. l, keyRate)
        if at > NOW then
          block(q, t, l, at)
          open = false
        end
      end
    end
    if open then return call('ZRANGE', q.f .. 'w:' .. lane(t, l), 0, 0)[1], tonumber(head[2]) end
  end
end

local lanes = hasLanes(q) -- what this call adds to them, or takes from them, changes nothing

-- pick gives the next to hand out: id, record, tenant.
local function pick()
  if not lanes then
    local id, _, from = bestPlain(true)
    if not id then return nil end
    takePlain(id, from)
    return id, load(q, id), ''
  end
  while true do
    local top = call('ZRANGE', q.f .. 'turn', 0, 0, 'WITHSCORES')
    local t = ''
    local laneID, laneRank = bestLane('')
    local id, best, from = bestPlain(false)
    if top[1] and ((not id and not laneID) or tonumber(top[2]) < turn0) then
      t = top[1]
      id = nil
      laneID = bestLane(t)
    end
    if laneID and (not id or laneRank < best) then
      local j = load(q, laneID)
      fromLane(q, laneID, j)
      return laneID, j, t
    end
    if id then
      takePlain(id, from)
      return id, load(q, id), ''
    end
    if not top[1] then return nil end -- else: all lanes of this tenant are held up now
  end
end

local loose, place = {}, {} -- of chains: what this call has let come though its first is taken
local function nextOfChain(j)
  if not j.g or string.sub(j.g, 1, 2) ~= 'g:' then return end
  place[j.g] = (place[j.g] or 0) + 1
  local id = call('ZRANGE', q.f .. 'g:' .. j.g, place[j.g], place[j.g])[1]
  if id and call('HGET', q.p .. id, 'fbp') == 'p' then
    loose[id] = true
    lanes = true
    toLane(q, id, load(q, id))
  end
end

-- whole: nothing but the list is to be looked at, so many are taken from it at once.
local whole = not lanes and not q.most and not rate and not limited
local leases, leaseText = {}, lives(lease)

local function lease_(id, j, n, t)
  local key = q.p .. id
  local tok = token .. '.' .. n
  if not whole then call('LPUSH', q.active, id) end
  call('SET', key .. ':lock', tok, 'PX', leaseText)
  later(leases, string.format('%.17g', NOW + lease - 1 + n / 4096), id)
  local fields = { 'processedOn', NOWS, 'ats', int(j.ats + 1), 'fbd', int(j.d + 1) }
  if worker ~= '' then
    fields[#fields + 1] = 'pb'
    fields[#fields + 1] = worker
  end
  call('HSET', key, unpack(fields))
  if j.l then
    call('SADD', q.f .. 'a:' .. j.l, id)
    if keyRate then spend(q.f .. 'r:' .. j.l, keyRate) end
  end
  if special(j) then
    call('ZREM', q.f .. 'p', id)
    call('HDEL', key, 'fbp')
    j.place = nil
    loose[id] = nil
  end
  if rate then spend(q.f .. 'r', rate) end
  if bull[1] and call('INCR', limiter) == 1 then call('PEXPIRE', limiter, math.floor(tonumber(bull[2] or 1000))) end
  if lanes and call('EXISTS', q.f .. 'turn') == 1 then
    local n = call('HINCRBY', q.f .. 's', 'turn', 1)
    if t == '' then
      turn0 = n
      call('HSET', q.f .. 's', 'turn0', n)
    elseif call('ZSCORE', q.f .. 'turn', t) then
      call('ZADD', q.f .. 'turn', n, t)
    end
  end
  event(q, 'active', id, 'prev', 'waiting')
  note(q, id, j, 'started', 'active')
  nextOfChain(j)
  local f = j.f or loadWhole(q, id).f
  local d = { id, int(j.d + 1), f.name, f.data, f.timestamp or '0', f.priority or '0', f.fb or '', f.atm or '0', f.fbb or '',
    f.fb and '' or f.opts or '{}', f.deid or '', f.rjk or '' }
  if j.atm > 0 then
    for n = 0, 9 do
      local s = f['fbf' .. n]
      if s then d[#d + 1] = s end
    end
  end
  return cmsgpack.pack(unpack(d)), #f.data
end

local out, bytes = {}, 0

-- begin hands out one that was picked, or does what else is to be done with it.
local function begin(id, j, t)
  if j and j.final then unmark(q, id, j) end
  if j and j.defa then
    if not whole then call('LPUSH', q.active, id) end
    event(q, 'active', id, 'prev', 'waiting')
    finish(q, id, j, 'dead', { text = j.defa, charge = true, cause = causeOf(j, cjson.encode({ code = 'deferred', message = j.defa })) })
  elseif j and special(j) and not j.place then
    if whole then call('LREM', q.active, 1, id) end
    enqueue(q, id, j, true, 'waiting') -- a Node client let it wait where it does not belong
  elseif j then
    local size
    out[#out + 1], size = lease_(id, j, #out + 1, t)
    bytes = bytes + size
  elseif whole then
    call('LREM', q.active, 1, id)
  end
end

-- takeMany takes from the list as long as there is nothing but the list.
local function takeMany()
  while #out < most and bytes < 16777216 and call('ZCARD', q.prio) == 0 do
    local ids = call('RPOP', q.wait, math.min(most - #out, 50))
    if not ids or #ids == 0 then return end
    local some = {}
    for _, id in ipairs(ids) do
      if string.sub(id, 1, 2) ~= '0:' then some[#some + 1] = id end -- else: a marker of BullMQ 4
    end
    if #some > 0 then call('LPUSH', q.active, unpack(some)) end
    for _, id in ipairs(some) do begin(id, loadWhole(q, id), '') end
  end
end

if whole and not stopped(q) then takeMany() end
whole = false
while #out < most and bytes < 16777216 and not stopped(q) do
  if rate then
    local at = opens(q.f .. 'r', rate)
    if at > NOW then
      again = at
      break
    end
  end
  if limited and bullHolds() then break end
  local id, j, t = pick()
  if not id then break end
  begin(id, j, t)
end
inParts('ZADD', q.f .. 'l', leases)
for id in pairs(loose) do
  local j = load(q, id)
  if j.place == 'w' then
    call('HSET', q.p .. id, 'fbp', 'p')
    fromLane(q, id, j)
  end
end
if #out > 0 then call('SADD', G .. 'q', q.name) end
q.wakePlain, q.wakeLane = true, true -- whoever else sleeps looks for what is left
if again then q.wakePlain, q.wakeLane, q.freed = false, false, false end
local due = nextDue(q)
if again and (not due or again < due) then due = again end
return { out, done(), counts(), int(NOW), { due and int(due) or '0' } }
