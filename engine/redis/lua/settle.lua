-- Settle: deliveries end, and what follows comes with them.
--
--   active ──ack──▶ completed | gone        ──dead──▶ failed, a dead letter
--          ──retry──▶ delayed | wait        ──cancelled, expired──▶ failed | gone
--          ──release──▶ delayed | wait        ──unbegun (7)──▶ failed, a dead letter, nothing charged
--
-- ARGV: number of settlements, then each in one argument, as strings of MessagePack:
-- queue, id, token, verdict, result (JSON, empty: none). An ack that nothing follows has
-- no more than these; others have wait in ms, cause (JSON), its text, stack (JSON), and
-- the number of messages that follow, which are arguments then, each as in lib/80_send.lua.
-- Keys: active, lock, stalled, job, completed, failed, wait, prioritized, delayed,
-- marker, events, de:, dn:, those of a parent; our leases, lanes and dead letters.
-- Gives for each 1, or 0 where the delivery had ended already; answers of what followed.

local out, sent = {}, {}

local function back(q, id, j, after, what, fields, ...)
  drop(q, id, j)
  if #fields > 0 then call('HSET', q.p .. id, unpack(fields)) end
  if after > 0 then
    note(q, id, j, what, 'delayed', 'd', NOW + after, ...)
    postpone(q, id, j, NOW + after)
  else
    note(q, id, j, what, 'waiting', ...)
    enqueue(q, id, j, true, 'active')
  end
end

-- stacks adds a stack to those of the attempts before, oldest first.
local function stacks(q, id, stack)
  local before = call('HGET', q.p .. id, 'stacktrace')
  if not before or #before < 3 or #before > 16384 then return stack end
  return string.sub(before, 1, -2) .. ',' .. string.sub(stack, 2)
end

local function settle(q, id, verdict, result, after, cause, text, stack)
  local j = load(q, id)
  if not j then -- its record was evicted
    call('DEL', q.p .. id .. ':lock')
    lapse(q, id)
    return 'gone'
  end
  if verdict == 2 or verdict == 4 then stack = stacks(q, id, stack) end
  if j.job and (verdict == 2 or verdict == 3) then
    if j.stop then return stopNow(q, id, j) end
    if late(j) then return tooLate(q, id, j, verdict == 2) end
  end
  if verdict == 1 then
    finish(q, id, j, 'completed', { result = result ~= '' and result or 'null', said = result ~= '' and result or nil })
  elseif verdict == 2 then
    local c = causeOf(j, cause)
    local was = j.atm
    j.failedNow = true
    back(q, id, j, after, 'retry', { 'fbf' .. was % 10, c, 'atm', int(was + 1), 'failedReason', text, 'stacktrace', stack }, 'c', c)
  elseif verdict == 3 then
    back(q, id, j, after, 'released', { 'fbd', int(math.max(j.d - 1, 0)) })
  elseif verdict == 4 then
    call('HSET', q.p .. id, 'stacktrace', stack)
    finish(q, id, j, 'dead', { text = text, cause = causeOf(j, cause), charge = true })
  elseif verdict == 7 then -- nobody began it
    call('HSET', q.p .. id, 'stacktrace', stack, 'fbd', math.max(j.d - 1, 0))
    finish(q, id, j, 'dead', { text = text, cause = causeOf(j, cause) })
  else
    finish(q, id, j, verdict == 5 and 'cancelled' or 'expired', { text = text, cause = causeOf(j, cause) })
  end
end

-- Who holds what is asked for all at once.
local all, locks, leases = {}, {}, {}
for i = 1, num() do
  local v = { cmsgpack.unpack(arg()) }
  local q, id = queue(v[1]), v[2]
  v.q, v.at, v.follows = q, cursor, tonumber(v[10] or 0)
  cursor = cursor + 2 * v.follows
  all[i], locks[i] = v, q.p .. id .. ':lock'
  if not leases[q] then leases[q], q.later, q.over = {}, {}, {} end
  v.n = #leases[q] + 1
  leases[q][v.n] = id
end
if #all > 0 then locks = call('MGET', unpack(locks)) end
for q, ids in pairs(leases) do leases[q] = call('ZMSCORE', q.f .. 'l', unpack(ids)) end
for i, v in ipairs(all) do
  local til = tonumber(leases[v.q][v.n] or nil)
  v.holds = locks[i] == v[3] and til and til > NOW
end

for i, v in ipairs(all) do
  local q, id = v.q, v[2]
  if v.holds and not q.over[id] then
    out[i] = 1
    if settle(q, id, tonumber(v[4]), v[5], tonumber(v[6] or 0), v[7], v[8], v[9]) == 'gone' then
      out[i] = 0
    end
    cursor = v.at
    for _ = 1, v.follows do
      local m = readMessage()
      sent[#sent + 1] = m.queue
      sent[#sent + 1] = sendOne(m)
    end
  else
    out[i] = 0
  end
end
return { out, done(), counts(), int(NOW), sent }
