-- Dead: dead letters, newest first.
--
-- ARGV: queue (empty: all), group (empty: all), only with a smaller number than this (0: from
-- the newest), most
-- Keys: fb:dead of the queue, that of all or the numbers of the group; job.
-- Gives for each its number, queue, id, the fields of its hash, and its group if it has
-- been grouped.

local name, group, before, most = arg(), arg(), arg(), num()
local out = {}
local set = G .. 'dead'
if group ~= '' then
  set = G .. 'dm:' .. group
elseif name ~= '' then
  adopt(queue(name))
  set = queue(name).f .. 'dead'
end
local top = before == '0' and '+inf' or '(' .. before
local ids = call('ZREVRANGEBYSCORE', set, top, '-inf', 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #ids, 2 do
  local q, id, seq = name, ids[i], int(tonumber(ids[i + 1]))
  if group ~= '' then id = call('ZRANGEBYSCORE', G .. 'dead', seq, seq)[1] or ':' end
  if group ~= '' or q == '' then q, id = string.match(id, '^([^:]*):(.*)$') end
  local dead = queue(q)
  if not call('ZSCORE', dead.p .. 'failed', id) then -- a Node client took it away
    haunts(dead, id, seq)
    out[#out + 1] = { seq }
  else
    out[#out + 1] = { seq, q, id, call('HGETALL', dead.p .. id), call('HGET', G .. 'di', seq) or '' }
  end
end
return { out, done(), counts(), int(NOW) }
