-- Settle, of acks of plain jobs that nothing follows: with few commands what settle.lua
-- does with many. Where one of them is another, it does nothing, and says so; then
-- settle.lua does it.
--
--   active ──▶ completed
--
-- ARGV: number of runs of settlements of one queue, then each run: queue, how many, and of each
-- id, token, and result (JSON, empty: none).
-- Keys: active, lock, stalled, job, completed, events; our leases and what has finished.
-- Gives for each 1, or 0 where the delivery had ended already; and queues of which more
-- is kept than it should be, each with that number. Or slow.

local ids, given, results, locks, of, n = {}, {}, {}, {}, {}, 0
for _ = 1, num() do
  local q = queue(arg())
  if not q.jobs then q.jobs, q.count = {}, 0 end
  local prefix = q.p
  for _ = 1, num() do
    n = n + 1
    local id, token, result = arg(), arg(), arg()
    ids[n], given[n], results[n], of[n], locks[n] = id, token, result, q, prefix .. id .. ':lock'
  end
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
    b = { age = tonumber(age or 0), count = tonumber(count or 0), none = none == '1', by = {} }
    bounds[keep] = b
  end
  return b
end

-- Nothing is written before it is known that all of them are plain. Those were handed out for
-- the first time (plain/receive.lua), so no attempt failed before.
local tokens, jobs = call('MGET', unpack(locks)), {}
for i = 1, n do
  local q, id = of[i], ids[i]
  jobs[i] = false
  if tokens[i] == given[i] and not q.jobs[id] then
    local f = call('HMGET', q.p .. id, 'name', 'fb', 'fbc', 'parentKey')
    local h = f[2] and head(f[2])
    if not h or not h.job or f[3] or f[4] then return slow() end
    local b = bound(h.keep)
    if b.none then return slow() end
    q.jobs[id], q.count = i, q.count + 1
    local j = b.by[f[1]] -- those of one name that are kept alike
    if not j then
      j = { job = true, name = f[1], atm = 0, bound = b }
      b.by[f[1]] = j
    end
    jobs[i] = j
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
    q.gone, q.locks, q.completed, q.x, q.counts = {}, {}, {}, {}, {}
    agesOf(q)
    q.last = newer(q.last)
    q.whole = q.last == NOW and NOWS .. '.' -- the score, up to its thousandths
  end
end

local out, zeros = {}, { '00', '0', '' }
for i = 1, n do
  local j = jobs[i]
  out[i] = j and 1 or 0
  if j then
    local q, id, result, b = of[i], ids[i], results[i], j.bound
    local said = result ~= ''
    local value = said and result or 'null'
    call('HSET', q.p .. id, 'atm', '1', 'finishedOn', NOWS, 'returnvalue', value, 'fbz', said and 'completed+' or 'completed')
    local g = #q.gone
    if g == 0 then
      event(q, 'completed', id, 'returnvalue', value, 'prev', 'active')
    else
      call('XADD', q.events, '*', 'event', 'completed', 'jobId', id, 'returnvalue', value, 'prev', 'active')
    end
    if said and #result <= 16384 then
      note(q, id, j, 'completed', 'completed', 'r', result)
    else
      note(q, id, j, 'completed', 'completed')
    end
    local score
    if q.whole then
      local digits = int(g)
      score = q.whole .. zeros[#digits] .. digits
    else
      score = scoreText(q.last + g / 1000)
    end
    q.gone[g + 1], q.locks[g + 1] = id, locks[i]
    q.completed[2 * g + 1], q.completed[2 * g + 2] = score, id
    if b.age > 0 and not leaves(q, b.age, q.last) then later(q.x, int(NOW + b.age), id) end
    if b.count > 0 then q.counts[b.count] = true end
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
    call('HSET', q.f .. 's', 'last', scoreText(q.last + (q.count - 1) / 1000))
    inParts('ZADD', q.f .. 'x', q.x)
    for count in pairs(q.counts) do
      if call('ZCARD', q.p .. 'completed') + call('ZCARD', q.f .. 'e') > count then later(over, q.name, int(count)) end
    end
    later(counted, q.name, 'completed')
    counted[#counted + 1] = q.count
    if call('EXISTS', q.wait, q.active, q.prio) == 0 then call('XADD', q.events, '*', 'event', 'drained') end
    noteDue(q)
  end
end
writeNotes()
return { out, nextOfAll(), counted, int(NOW), over }
