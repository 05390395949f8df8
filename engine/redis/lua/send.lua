-- Send: messages come to be, for any queues.
--
--   (nothing) ──▶ wait | prioritized | delayed, or a lane of ours
--
-- ARGV: number of messages, then each as in lib/80_send.lua.
-- Keys: those of its queues (id, meta, job, wait, prioritized, pc, delayed, marker,
-- events, de:), the records of ids and dedup keys, the history.
-- Gives the answer for each, and when time will do something next.

local out = {}
for i = 1, num() do out[i] = sendOne() end
return { out, done(), counts(), int(NOW) }
