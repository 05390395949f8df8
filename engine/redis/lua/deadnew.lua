-- DeadNew: dead letters that have not been grouped yet, oldest first.
--
-- ARGV: most
-- Keys: the dead letters of all, the number up to which they have been grouped, job.
-- Gives for each its number, queue, kind, cause (fbu), reason, when it died; of one that a
-- Node client took away only the number.

local from, out = call('GET', G .. 'dx') or '0', {}
local ids = call('ZRANGEBYSCORE', G .. 'dead', '(' .. from, '+inf', 'WITHSCORES', 'LIMIT', 0, num())
for i = 1, #ids, 2 do
  local name, id = string.match(ids[i], '^([^:]*):(.*)$')
  local v = call('HMGET', queue(name).p .. id, 'name', 'fbu', 'failedReason', 'finishedOn', 'fbq')
  local seq = int(tonumber(ids[i + 1]))
  if v[5] == seq then
    out[#out + 1] = { seq, name, v[1] or '', v[2] or '', v[3] or '', v[4] or '0' }
  else
    out[#out + 1] = { seq }
  end
end
return { out, done(), counts(), int(NOW) }
