-- Remove: finished jobs leave the ledger; a dead one is discarded.
--
--   completed | failed ──▶ gone
--
-- ARGV: number of jobs, then each: id, queue and id of a Node job that it may be
-- Keys: completed, failed, job and all of its keys, events; records of dedup.
-- Gives for each done, unknown or conflict.

local out = {}
for i = 1, num() do
  local q, id, j = find(arg(), arg(), arg())
  local state = j and stateOf(q, id, j)
  if not j or not j.job then
    out[i] = 'unknown'
  elseif state == 'waiting' or state == 'delayed' or state == 'active' then
    out[i] = 'conflict'
  else
    if state == 'dead' then note(q, id, j, 'discarded', '') end
    event(q, 'removed', id, 'prev', state == 'completed' and 'completed' or 'failed')
    local older = load(q, id .. '%~')
    if older then forget(q, id .. '%~', older) end
    forget(q, id, j)
    out[i] = 'done'
  end
end
return { out, done(), counts(), int(NOW) }
