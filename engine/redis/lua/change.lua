-- Change: jobs that wait get another priority, time or payload.
--
--   wait | prioritized | delayed | lane ──▶ another of these
--
-- ARGV: number of changes, then each: id, queue and id of a Node job that it may be,
-- priority (-1: stays), due (-1: stays, 0: now), whether the payload changes, data, how
-- Keys: wait, prioritized, pc, delayed, job, marker, events; our lanes.
-- Gives for each done, unknown, conflict or group.

local out = {}
for i = 1, num() do
  local q, id, j = find(arg(), arg(), arg())
  local prio, due, payload, data, enc = num(), num(), arg(), arg(), arg()
  if q then
    advance(q, 200)
    j = load(q, id)
  end
  local state = j and stateOf(q, id, j)
  if not j or not j.job then
    out[i] = 'unknown'
  elseif state ~= 'waiting' and state ~= 'delayed' then
    out[i] = 'conflict'
  elseif prio >= 0 and j.g then
    out[i] = 'group'
  else
    if payload == '1' then call('HSET', q.p .. id, 'data', data, 'fbb', enc) end
    if prio >= 0 then
      j.prio = prio
      call('HSET', q.p .. id, 'priority', prio)
    end
    if due >= 0 or prio >= 0 and state == 'waiting' then
      unqueue(q, id, j)
      if due > NOW then
        state = 'delayed'
        postpone(q, id, j, due)
      else
        call('HSET', q.p .. id, 'delay', 0)
        enqueue(q, id, j, false, state == 'waiting' and 'moved' or state)
        state = 'waiting'
      end
    end
    local at = state == 'delayed' and select(2, stateOf(q, id, j))
    if at then note(q, id, j, 'changed', state, 'd', at) else note(q, id, j, 'changed', state) end
    out[i] = 'done'
  end
end
return { out, done(), counts(), int(NOW) }
