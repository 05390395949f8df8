-- Rewake: a marker was popped by somebody who has no use for it.
--
-- ARGV: queue
-- Keys: marker of BullMQ and of ours, set again where something waits.

local q = queue(arg())
q.wakePlain, q.wakeLane, q.wakeDelay = true, true, true
return { {}, done(), counts(), int(NOW) }
