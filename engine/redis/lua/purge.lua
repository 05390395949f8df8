-- Purge: what is not active leaves a queue, with its records. Up to 500 a call.
--
--   wait | prioritized | delayed | lane ──▶ gone
--
-- ARGV: queue
-- Keys: wait, prioritized, delayed, job and all of its keys, events; our lanes, records.
-- Gives how many went.

local q = queue(arg())
local n = 0
advance(q, 1000)
local function drop_(id, popped)
  local j = load(q, id)
  if not j then return end
  if not popped then unqueue(q, id, j) end
  call('ZREM', q.f .. 'x', id)
  unlists(q, id)
  note(q, id, j, 'discarded', '', 'x', 'its queue was purged')
  if j.g then
    call('ZREM', q.f .. 'g:' .. j.g, id)
    follow(q, j.g)
  end
  keyEnds(q, id, j)
  delKeys(q, id)
  call('DEL', G .. 'i:' .. id)
  if j.key then
    local r = record(G .. j.key)
    if r and r.id == id then call('DEL', G .. j.key) end
    call('HDEL', q.f .. 'k', id)
  end
  revive(q, id)
  event(q, 'removed', id, 'prev', 'wait')
  n = n + 1
end
while n < 500 do
  local popped = call('RPOP', q.wait)
  local id = popped or call('ZRANGE', q.prio, 0, 0)[1] or call('ZRANGE', q.delayed, 0, 0)[1]
    or call('ZREVRANGE', q.f .. 'p', 0, 0)[1] or call('ZRANGE', q.f .. 'd', 0, 0)[1]
  if not id then break end
  drop_(id, popped)
  call('ZREM', q.prio, id)
  call('ZREM', q.delayed, id)
  call('ZREM', q.f .. 'p', id)
  call('ZREM', q.f .. 'd', id)
end
return { { n }, done(), counts(), int(NOW) }
