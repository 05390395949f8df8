-- Send: messages come to be, for any queues.
--
--   (nothing) ──▶ wait | prioritized | delayed, or a lane of ours
--
-- ARGV: number of messages, then each as in lib/80_send.lua.
-- Keys: those of its queues (id, meta, job, wait, prioritized, pc, delayed, marker,
-- events, de:), the records of ids and dedup keys, the history.
-- Gives the answer for each, and when time will do something next.
--
-- Most are new and have no dedup key: whether they are is asked for all at once.

local out, all, ids, jobs, seen = {}, {}, {}, {}, {}
for i = 1, num() do
  local m = readMessage()
  all[i], ids[i], jobs[i] = m, G .. 'i:' .. m.id, PRE .. ':' .. m.queue .. ':' .. m.id
end
local known_ = call('MGET', unpack(ids))
local fresh = call('EXISTS', unpack(jobs)) == 0
for i, m in ipairs(all) do
  if fresh and not known_[i] and not seen[m.id] and m.key == '' then
    out[i] = store(queue(m.queue), m)
  else
    out[i] = sendOne(m)
  end
  seen[m.id] = true
end
return { out, done(), counts(), int(NOW) }
