-- Settle, of acks of plain jobs that nothing follows: with few commands what settle.lua
-- does with many. Where one of them is another, it does nothing, and says so; then
-- settle.lua does it.
--
--   active ──▶ completed
--
-- ARGV: number of settlements, then each in one argument, as strings of MessagePack:
-- queue, id, token, verdict, result (JSON, empty: none).
-- Keys: active, lock, stalled, job, completed, events; our leases and what has finished.
-- Gives for each 1, or 0 where the delivery had ended already; and queues of which more
-- is kept than it should be, each with that number. Or slow.

local all, locks, of, n = {}, {}, {}, num()
for i = 1, n do
  local v = { cmsgpack.unpack(arg()) }
  local q = queue(v[1])
  if not q.jobs then q.jobs, q.count = {}, 0 end
  all[i], of[i], locks[i] = v, q, q.p .. v[2] .. ':lock'
end
for _, q in ipairs(touched) do
  -- Where no lease has ended, whoever has the lock has one.
  if q.most or METRICS > 0 or call('ZCOUNT', q.f .. 'l', '-inf', NOW) > 0
    or call('EXISTS', q.p .. 'metrics:completed', q.p .. 'metrics:failed') > 0 then
    return slow()
  end
end

local bounds = {} -- of retentions, by their text
local function bound(keep)
  local b = bounds[keep]
  if not b then
    local age, count, none = string.match(keep, '^(%d+),(%d+),(%d+)')
    b = { age = tonumber(age or 0), count = tonumber(count or 0), none = none == '1' }
    bounds[keep] = b
  end
  return b
end

-- Nothing is written before it is known that all of them are plain.
local tokens, jobs = call('MGET', unpack(locks)), {}
for i = 1, n do
  local v, q = all[i], of[i]
  local id = v[2]
  jobs[i] = false
  if tokens[i] == v[3] and not q.jobs[id] then
    local f = call('HMGET', q.p .. id, 'name', 'fb', 'atm', 'fbr', 'fbc', 'parentKey')
    local h = f[2] and head(f[2])
    if not h or not h.job or f[4] or f[5] or f[6] then return slow() end
    local b = bound(h.keep)
    if b.none then return slow() end
    q.jobs[id], q.count = i, q.count + 1
    jobs[i] = { job = true, name = f[1], atm = f[3] or 0, bound = b }
  end
end

-- leaving finds them in the active list. As a rule they are the oldest there, so that its
-- end is replaced by what stays of it. Nothing: somebody has taken one elsewhere.
local function leaving(q)
  local tail, found, n, stay, from = call('LRANGE', q.active, -q.count - 50, -1), {}, 0, {}, nil
  for i, id in ipairs(tail) do
    if q.jobs[id] and not found[id] then
      found[id], n, from = true, n + 1, from or i
    elseif from then
      stay[#stay + 1] = id
    end
  end
  local others = {}
  for id in pairs(n < q.count and q.jobs or {}) do
    if not found[id] then
      if not call('LPOS', q.active, id) then return nil end
      others[#others + 1] = id
    end
  end
  return { pop = from and #tail - from + 1 or 0, stay = stay, others = others }
end
for _, q in ipairs(touched) do
  q.leaving = q.count > 0 and leaving(q)
  if q.count > 0 and not q.leaving then return slow() end
  if q.count > 0 and call('ZCARD', q.f .. 'l') < q.count then return slow() end -- some was evicted
end
for _, q in ipairs(touched) do
  if q.count > 0 then
    if q.leaving.pop > 0 then call('RPOP', q.active, q.leaving.pop) end
    if #q.leaving.stay > 0 then call('RPUSH', q.active, unpack(q.leaving.stay)) end
    for _, id in ipairs(q.leaving.others) do call('LREM', q.active, -1, id) end
    q.number = call('HINCRBY', q.f .. 's', 'f', q.count) - q.count
    q.gone, q.locks, q.completed, q.shelf, q.ages, q.counts = {}, {}, {}, {}, {}, {}
  end
end

local out = {}
for i = 1, n do
  local j = jobs[i]
  out[i] = j and 1 or 0
  if j then
    local v, q = all[i], of[i]
    local id, result = v[2], v[5]
    local said = result ~= ''
    local value = said and result or 'null'
    j.atm = j.atm + 0
    call('HSET', q.p .. id, 'atm', int(j.atm + 1), 'finishedOn', NOWS, 'returnvalue', value, 'fbz', said and 'completed+' or 'completed')
    event(q, 'completed', id, 'returnvalue', value, 'prev', 'active')
    if said and #result <= 16384 then
      note(q, id, j, 'completed', 'completed', 'r', result)
    else
      note(q, id, j, 'completed', 'completed')
    end
    local n = #q.gone + 1
    q.gone[n], q.locks[n] = id, locks[i]
    q.completed[2 * n - 1], q.completed[2 * n] = NOWS, id
    q.shelf[2 * n - 1], q.shelf[2 * n] = int(q.number + n), id
    if j.bound.age > 0 then later(q.ages, int(NOW + j.bound.age), id) end
    if j.bound.count > 0 then q.counts[j.bound.count] = true end
  end
end

local counted, over = {}, {}
for _, q in ipairs(touched) do
  if q.count > 0 then
    call('DEL', unpack(q.locks))
    call('ZREM', q.f .. 'l', unpack(q.gone))
    call('SREM', q.p .. 'stalled', unpack(q.gone))
    call('ZREM', q.f .. 'j', unpack(q.gone))
    call('ZADD', q.p .. 'completed', unpack(q.completed))
    call('ZADD', q.f .. 'f', unpack(q.shelf))
    inParts('ZADD', q.f .. 'x', q.ages)
    for count in pairs(q.counts) do
      if call('ZCARD', q.f .. 'f') > count then later(over, q.name, int(count)) end
    end
    later(counted, q.name, 'completed')
    counted[#counted + 1] = q.count
    if call('EXISTS', q.wait, q.active, q.prio) == 0 then call('XADD', q.events, '*', 'event', 'drained') end
    noteDue(q)
  end
end
writeNotes()
return { out, nextOfAll(), counted, int(NOW), over }
