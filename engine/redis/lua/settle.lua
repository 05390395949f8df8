-- Settle: deliveries end, and what follows comes with them.
--
--   active ──ack──▶ completed | gone        ──dead──▶ failed, a dead letter
--          ──retry──▶ delayed | wait        ──cancelled, expired──▶ failed | gone
--          ──release──▶ delayed | wait        ──unbegun (7)──▶ failed, a dead letter, nothing charged
--
-- ARGV: number of settlements, then each: queue, id, token, verdict, wait in ms, cause
-- (JSON), its text, stack (JSON), result (JSON, empty: none), number of messages that
-- follow, then those, an argument each.
-- Keys: active, lock, stalled, job, completed, failed, wait, prioritized, delayed,
-- marker, events, de:, dn:, those of a parent; our leases, lanes and dead letters.
-- Gives for each 1, or 0 where the delivery had ended already; answers of what followed.

local out, sent = {}, {}

local function back(q, id, j, after, kind, fields, extra)
  drop(q, id, j)
  if #fields > 0 then call('HSET', q.p .. id, unpack(fields)) end
  if after > 0 then
    note(q, id, j, kind, 'delayed', 'd', NOW + after, unpack(extra))
    postpone(q, id, j, NOW + after)
  else
    note(q, id, j, kind, 'waiting', unpack(extra))
    enqueue(q, id, j, true, 'active')
  end
end

local function settle(q, id, verdict, after, cause, text, stack, result)
  local j = load(q, id)
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
    back(q, id, j, after, 'retry', { 'fbf' .. was % 10, c, 'atm', int(was + 1), 'failedReason', text, 'stacktrace', stack }, { 'c', c })
  elseif verdict == 3 then
    back(q, id, j, after, 'released', { 'fbd', int(math.max(j.d - 1, 0)) }, {})
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
  local v = { q = queue(arg()), id = arg(), token = arg(), verdict = num(), after = num(), cause = arg(), text = arg(),
    stack = arg(), result = arg(), follows = num(), at = 0 }
  v.at = cursor
  cursor = cursor + v.follows
  all[i], locks[i] = v, v.q.p .. v.id .. ':lock'
  leases[v.q] = leases[v.q] or {}
  v.n = #leases[v.q] + 1
  leases[v.q][v.n] = v.id
end
if #all > 0 then locks = call('MGET', unpack(locks)) end
for q, ids in pairs(leases) do
  leases[q] = call('ZMSCORE', q.f .. 'l', unpack(ids))
  q.later, q.over = {}, {}
end

for i, v in ipairs(all) do
  local til = tonumber(leases[v.q][v.n] or nil)
  if locks[i] == v.token and til and til > NOW and not v.q.over[v.id] then
    settle(v.q, v.id, v.verdict, v.after, v.cause, v.text, v.stack, v.result)
    out[i] = 1
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
