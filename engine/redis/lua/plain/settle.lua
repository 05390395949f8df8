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

local all, locks = {}, {}
for i = 1, num() do
  local v = { cmsgpack.unpack(arg()) }
  local q = queue(v[1])
  if q.most then return slow() end
  if not q.ids then q.ids, q.jobs, q.count = {}, {}, 0 end
  q.ids[#q.ids + 1] = v[2]
  v.n = #q.ids
  all[i], locks[i], v.q = v, q.p .. v[2] .. ':lock', q
end
locks = call('MGET', unpack(locks))
for _, q in ipairs(touched) do
  if METRICS > 0 or call('EXISTS', q.p .. 'metrics:completed', q.p .. 'metrics:failed') > 0 then return slow() end
  q.leases = call('ZMSCORE', q.f .. 'l', unpack(q.ids))
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
for i, v in ipairs(all) do
  local q, id = v.q, v[2]
  local til = tonumber(q.leases[v.n] or nil)
  if locks[i] == v[3] and til and til > NOW and not q.jobs[id] then
    local f = call('HMGET', q.p .. id, 'name', 'fb', 'atm', 'fbr', 'fbc', 'deid', 'parentKey')
    if not f[2] or f[4] or f[5] or f[6] or f[7] or not head(f[2]).job then return slow() end
    local b = bound(head(f[2]).keep)
    if b.none then return slow() end
    v.job = { name = f[1], job = true, atm = tonumber(f[3] or 0), bound = b }
    q.jobs[id], q.count = v.job, q.count + 1
  end
end

-- leave takes them out of the active list. As a rule they are the oldest there, so its
-- end is replaced by what stays of it.
local function leave(q)
  local tail, found, n, stay, from = call('LRANGE', q.active, -2 * q.count, -1), {}, 0, {}, nil
  for i, id in ipairs(tail) do
    if q.jobs[id] and not found[id] then
      found[id], n, from = true, n + 1, from or i
    elseif from then
      stay[#stay + 1] = id
    end
  end
  if n < q.count then
    for id in pairs(q.jobs) do
      if not found[id] and not call('LPOS', q.active, id) then return false end -- somebody has taken it elsewhere
    end
  end
  return function()
    if from then call('RPOP', q.active, #tail - from + 1) end
    if #stay > 0 then call('RPUSH', q.active, unpack(stay)) end
    if n == q.count then return end
    for id in pairs(q.jobs) do
      if not found[id] then call('LREM', q.active, -1, id) end
    end
  end
end
for _, q in ipairs(touched) do
  if q.count > 0 then
    q.leave = leave(q)
    if not q.leave then return slow() end
  end
end

local out, counted, over = {}, {}, {}
for _, q in ipairs(touched) do
  if q.count > 0 then
    q.leave()
    q.number = call('HINCRBY', q.f .. 's', 'f', q.count) - q.count
    q.gone, q.locks, q.completed, q.shelf, q.ages, q.counts = {}, {}, {}, {}, {}, {}
  end
end
for i, v in ipairs(all) do
  out[i] = v.job and 1 or 0
  if v.job then
    local q, id, j, result = v.q, v[2], v.job, v[5]
    local value = result ~= '' and result or 'null'
    call('HSET', q.p .. id, 'atm', int(j.atm + 1), 'finishedOn', NOWS, 'returnvalue', value, 'fbo', result ~= '' and '1' or '0')
    event(q, 'completed', id, 'returnvalue', value, 'prev', 'active')
    if result ~= '' and #result <= 16384 then
      note(q, id, j, 'completed', 'completed', 'r', result)
    else
      note(q, id, j, 'completed', 'completed')
    end
    local n = #q.gone + 1
    q.gone[n], q.locks[n] = id, q.p .. id .. ':lock'
    q.completed[2 * n - 1], q.completed[2 * n] = NOWS, id
    q.shelf[2 * n - 1], q.shelf[2 * n] = int(q.number + n), id
    if j.bound.age > 0 then later(q.ages, int(NOW + j.bound.age), id) end
    if j.bound.count > 0 then q.counts[j.bound.count] = true end
  end
end
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
      if call('ZCARD', q.f .. 'f') > count then
        later(over, q.name, int(count))
      end
    end
    later(counted, q.name, 'completed')
    counted[#counted + 1] = q.count
    if call('EXISTS', q.wait, q.active, q.prio) == 0 then call('XADD', q.events, '*', 'event', 'drained') end
    noteDue(q)
  end
end
writeNotes()
return { out, nextOfAll(), counted, int(NOW), over }
