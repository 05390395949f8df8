-- PutDocument, DeleteDocument: a small named value.
--
-- ARGV: put or delete, collection, key, revision that must be stored (-1: any, 0: none),
-- expiry in ns and in ms (0: never), value
-- Keys: ::fb:d:<collection> (values by key), ::fb:n:<collection> (keys in order).
-- Gives done, conflict or none; the revision; what is stored, where it conflicts.

local what, c, k, rev, ns, ms, value = arg(), arg(), arg(), arg(), arg(), num(), arg()
local values, names = G .. 'd:' .. c, G .. 'n:' .. c
local has = call('HGET', values, k)
local at, hasMS
if has then
  at, hasMS = string.match(has, '^(%d+)|%-?%d+|(%-?%d+)|')
  if tonumber(hasMS) ~= 0 and tonumber(hasMS) <= NOW then has, at = false, nil end
end
if not has and what == 'delete' then return { { 'none' }, '0', {}, int(NOW) } end
if rev ~= '-1' and rev ~= (at or '0') then return { { 'conflict', at or '0', has or '' }, '0', {}, int(NOW) } end
if what == 'delete' then
  call('HDEL', values, k)
  call('ZREM', names, k)
  return { { 'done', at }, '0', {}, int(NOW) }
end
local new = int(call('INCR', G .. 'rev'))
call('HSET', values, k, new .. '|' .. ns .. '|' .. int(ms) .. '|' .. value)
call('ZADD', names, 0, k)
return { { 'done', new }, '0', {}, int(NOW) }
