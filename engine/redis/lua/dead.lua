-- Dead: dead letters, newest first.
--
-- ARGV: queue (empty: all), only with a smaller number than this (0: from the newest), most
-- Keys: fb:dead of the queue, or that of all; job.
-- Gives for each its number, queue, id and the fields of its hash.

local name, before, most = arg(), arg(), num()
local out = {}
local set = G .. 'dead'
if name ~= '' then
  adopt(queue(name))
  set = queue(name).f .. 'dead'
end
local top = before == '0' and '+inf' or '(' .. before
local ids = call('ZREVRANGEBYSCORE', set, top, '-inf', 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #ids, 2 do
  local q, id = name, ids[i]
  if q == '' then q, id = string.match(id, '^([^:]*):(.*)$') end
  local dead = queue(q)
  if not call('ZSCORE', dead.p .. 'failed', id) then -- a Node client took it away
    call('ZREM', dead.f .. 'dead', id)
    call('ZREM', G .. 'dead', q .. ':' .. id)
    out[#out + 1] = { int(tonumber(ids[i + 1])) }
  else
    out[#out + 1] = { int(tonumber(ids[i + 1])), q, id, call('HGETALL', dead.p .. id) }
  end
end
return { out, done(), counts(), int(NOW) }
