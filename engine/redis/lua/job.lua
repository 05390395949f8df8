-- Job: where one message is, and its record. It changes nothing but what time has done.
--
-- ARGV: id, queue and id of a Node job that it may stand for (empty: none)
-- Keys: the record of the id, job, lock, delayed, completed, failed.
-- Gives queue, state, until when it is delayed, the fields of its hash; state done: it
-- is gone and remembered; nothing: unknown.

local id, guessQueue, guessID = arg(), arg(), arg()
local q, at, j, r = find(id, guessQueue, guessID)
if not q then return { {}, done(), counts(), int(NOW) } end
advance(q, 200)
j = load(q, at)
if not j then
  if r and NOW < r.til then return { { q.name, 'done', '0' }, done(), counts(), int(NOW) } end
  return { {}, done(), counts(), int(NOW) }
end
local state, due = stateOf(q, at, j)
if state == 'dead' and not j.dead then adoptOne(q, at, call('ZSCORE', q.p .. 'failed', at)) end
local says = { q.name, state, due and int(due) or '0', r and NOW < r.til and '1' or '0', at }
return { says, done(), counts(), int(NOW), call('HGETALL', q.p .. at) }
