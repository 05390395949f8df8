-- Thin: what is kept beyond a number leaves.
--
--   completed | failed ──▶ gone
--
-- ARGV: how many as most, number of queues and counts, then each: queue, the number
-- Keys: fb:e, completed, failed, job and all of its keys; records of ids and dedup keys.

local most = num()
for _ = 1, num() do
  local q, count = queue(arg()), num()
  thinFinished(q, count, most)
end
return { {}, done(), counts(), int(NOW) }
