-- Settle: deliveries end, and what follows comes with them.
--
--   active ──ack──▶ completed | gone        ──dead──▶ failed, a dead letter
--          ──retry──▶ delayed | wait        ──cancelled, expired──▶ failed | gone
--          ──release──▶ delayed | wait        ──unbegun (7)──▶ failed, a dead letter, nothing charged
--
-- ARGV: number of settlements, then each: queue, id, token, verdict, wait in ms, cause
-- (JSON), its text, stack (JSON), result (JSON, empty: none), number of messages that
-- follow, then those.
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
    back(q, id, j, after, 'retry', { 'fbf' .. was % 10, c, 'atm', was + 1, 'failedReason', text, 'stacktrace', stack }, { 'c', c })
  elseif verdict == 3 then
    back(q, id, j, after, 'released', { 'fbd', math.max(j.d - 1, 0) }, {})
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

for i = 1, num() do
  local name, id, token, verdict, after = arg(), arg(), arg(), num(), num()
  local cause, text, stack, result, follows = arg(), arg(), arg(), arg(), num()
  local q = queue(name)
  if holds(q, id, token) then
    settle(q, id, verdict, after, cause, text, stack, result)
    out[i] = 1
    for _ = 1, follows do
      local m = ARGV[cursor + 1]
      sent[#sent + 1] = m
      sent[#sent + 1] = sendOne()
    end
  else
    cursor = cursor + follows * 21
    out[i] = 0
  end
end
return { out, done(), counts(), int(NOW), sent }
