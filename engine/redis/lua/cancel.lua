-- Cancel: jobs end, or are asked to stop.
--
--   wait | delayed | lane ──▶ failed, as cancelled        active ──▶ active, asked to stop
--
-- ARGV: reason, number of jobs, then each: id, queue and id of a Node job that it may be
-- Keys: those of finish (lib/60_finish.lua); the field fbc.
-- Gives for each cancelled, active, finished or unknown.

local reason, out = arg(), {}
for i = 1, num() do
  local q, id, j = find(arg(), arg(), arg())
  if q then
    advance(q, 200)
    j = load(q, id)
  end
  if not j or not j.job then
    out[i] = 'unknown'
  else
    local state = stateOf(q, id, j)
    if state == 'waiting' or state == 'delayed' then
      j.stop = '!' .. reason
      stopNow(q, id, j)
      out[i] = 'cancelled'
    elseif state == 'active' then
      if not j.stop then
        call('HSET', q.p .. id, 'fbc', '!' .. reason)
        note(q, id, j, 'cancel_requested', '', 'x', reason)
      end
      out[i] = 'active'
    else
      out[i] = 'finished'
    end
  end
end
return { out, done(), counts(), int(NOW) }
