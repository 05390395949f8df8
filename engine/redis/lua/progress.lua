-- Progress: what running jobs tell.
--
-- ARGV: number of updates, then each: queue, id, token, progress as BullMQ shows it
-- (JSON, empty: no change), as we keep it, number of log lines, then those
-- Keys: lock, job (progress), logs, events, our history.
-- Gives for each 1, 2 where the job is to stop, or 0 where the delivery has ended.

local out = {}
for i = 1, num() do
  local q, id, token, shown, kept, lines = queue(arg()), arg(), arg(), arg(), arg(), num()
  local j = holds(q, id, token) and load(q, id)
  if j and j.job then
    if shown ~= '' then
      call('HSET', q.p .. id, 'progress', shown, 'fbh', kept)
      event(q, 'progress', id, 'data', shown)
      note(q, id, j, 'progress', '', 'g', kept)
    end
    for _ = 1, lines do
      local line = arg()
      call('RPUSH', q.p .. id .. ':logs', line)
      note(q, id, j, 'log', '', 'x', line)
    end
    if lines > 0 then
      local most = not j.ours and string.match(call('HGET', q.p .. id, 'opts') or '', '"kl":(%d+)')
      call('LTRIM', q.p .. id .. ':logs', -math.max(math.min(tonumber(most or 1000), 1000), 1), -1)
    end
    out[i] = j.stop and 2 or 1
  else
    cursor = cursor + lines
    out[i] = 0
  end
end
return { out, done(), counts(), int(NOW) }
