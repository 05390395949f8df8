-- Jobs: what is known of some jobs, found by a list. It changes nothing but what time
-- has done, and drops from fb:j what has gone or has finished by somebody else.
--
-- ARGV: number of jobs, then each: queue, id
-- Keys: job, lock, delayed, completed, failed, fb:j.
-- Gives for each its state, until when it is delayed, and the fields of its hash; or
-- nothing, where it is no job (any more).

local out, here = {}, {}
for i = 1, num() do
  local q, id = queue(arg()), arg()
  if not here[q.name] then
    here[q.name] = true
    advance(q, 200)
  end
  local j = load(q, id)
  out[i] = {}
  if j and j.job then
    local state, due = stateOf(q, id, j)
    out[i] = { state, due and int(due) or '0', call('HGETALL', q.p .. id) }
    if state ~= 'waiting' and state ~= 'delayed' and state ~= 'active' then unlists(q, id) end
  elseif not j then
    missed(q, id)
  end
end
return { out, done(), counts(), int(NOW) }
