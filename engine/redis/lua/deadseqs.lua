-- DeadSeqs: numbers of dead letters, oldest first.
--
-- ARGV: queue (empty: all), group (empty: all), only with a larger number than this, only
-- with a smaller one (0: all), most, 1 where the caller asks for causes
-- Keys: fb:dead of the queue, that of all or the numbers of the group; job.
-- Gives for each its number, and its cause (fbu).

local name, group, after, before, most, causes = arg(), arg(), arg(), arg(), num(), arg() == '1'
local set, out = G .. 'dead', {}
if group ~= '' then
  set = G .. 'dm:' .. group
  if name ~= '' and call('HGET', G .. 'dg:' .. group, 'queue') ~= name then most = 0 end
elseif name ~= '' then
  adopt(queue(name))
  set = queue(name).f .. 'dead'
end
local ids = call('ZRANGEBYSCORE', set, '(' .. after, before == '0' and '+inf' or '(' .. before, 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #ids, 2 do
  local seq, cause = int(tonumber(ids[i + 1])), ''
  if causes then
    local at = call('ZRANGEBYSCORE', G .. 'dead', seq, seq)[1]
    local q, id = string.match(at or ':', '^([^:]*):(.*)$')
    cause = call('HGET', queue(q).p .. id, 'fbu') or ''
  end
  out[#out + 1] = { seq, cause }
end
return { out, done(), counts(), int(NOW) }
