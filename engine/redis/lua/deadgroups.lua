-- DeadGroups: dead letters by cause, newest or largest first. It looks at 1,000 groups a
-- call at most.
--
-- ARGV: dn or dc (which order), score and group after which to go on (empty: from the
-- start), most, and only with this queue, kind, code, group (empty: all)
-- Keys: the groups by their order, what each is about, its numbers.
-- Gives for each its score, group, queue, kind, code, text, count, first, last, newest
-- number; and the place of the last that was looked at, nothing at the end.

local set, score, after, most = G .. arg(), arg(), arg(), num()
local only = { queue = arg(), kind = arg(), code = arg() }
local one = arg()
local from, out, last, lastScore = 0, {}, nil, nil
if after ~= '' then
  if tonumber(call('ZSCORE', set, after) or nil) == tonumber(score) then
    from = call('ZREVRANK', set, after) + 1
  else
    from = call('ZCOUNT', set, '(' .. score, '+inf') -- it has moved: some may come twice
  end
end
local ids
if one == '' then
  ids = call('ZREVRANGE', set, from, from + 999, 'WITHSCORES')
else
  local at = call('ZSCORE', set, one)
  ids = at and { one, at } or {}
end
for i = 1, #ids, 2 do
  local g = ids[i]
  local v = call('HMGET', G .. 'dg:' .. g, 'queue', 'kind', 'code', 'text', 'first', 'last')
  last, lastScore = g, int(tonumber(ids[i + 1]))
  if v[1] and (only.queue == '' or only.queue == v[1]) and (only.kind == '' or only.kind == v[2]) and (only.code == '' or only.code == v[3]) then
    local newest = call('ZREVRANGE', G .. 'dm:' .. g, 0, 0)[1] or '0'
    out[#out + 1] = { lastScore, g, v[1], v[2], v[3], v[4], call('ZCARD', G .. 'dm:' .. g), v[5], v[6], newest }
    if #out == most then break end
  end
end
local more = one == '' and #ids > 0 and { lastScore, last } or {}
return { out, done(), counts(), int(NOW), more }
