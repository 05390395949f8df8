-- Extend: leases end at another time.
--
--   active ──▶ active, lease of ms from now; with 0: ──▶ wait, as if the time had come
--
-- ARGV: lease in ms, number of receipts, then each: queue, id, token
-- Keys: lock, stalled, our leases; with 0 those of a lapse (lib/60_finish.lua).
-- Gives for each 1, 2 where it is a job that is to stop, or 0 where it had ended.

local lease, out = num(), {}
for i = 1, num() do
  local q, id, token = queue(arg()), arg(), arg()
  if not holds(q, id, token) then
    out[i] = 0
  else
    out[i] = call('HEXISTS', q.p .. id, 'fbc') == 1 and 2 or 1 -- before a lapse, which ends such a job
    if lease == 0 then
      lapse(q, id)
    else
      lock(q, id, token, lease, 1 + i % 4095)
      call('SREM', q.p .. 'stalled', id)
    end
  end
end
return { out, done(), counts(), int(NOW) }
