-- DeadGone: dead letters of an obliterated queue leave the lists of all, 500 a call.
--
-- ARGV: queue
-- Keys: fb:dead, and those of undead (lib/55_leave.lua).
-- Gives how many there were.

local q = queue(arg())
local ids = call('ZPOPMIN', q.f .. 'dead', 500)
for i = 1, #ids, 2 do undead(q, ids[i], int(tonumber(ids[i + 1]))) end
return { { #ids / 2 }, done(), counts(), int(NOW) }
