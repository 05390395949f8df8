-- Peek: what has not finished, oldest first, as it is. It changes nothing but what time
-- has done.
--
-- ARGV: queue, when the one was sent after which to go on, its id (empty: from the start), most
-- Keys: fb:j, job, lock, delayed, completed, failed; our leases and lanes.
-- Gives for each its id, state, until when it is delayed or leased, the fields of its hash;
-- and when the last that was looked at was sent, and its id, nothing at the end.

local q, at, after, most = queue(arg()), arg(), arg(), num()
advance(q, 1000)
local key = q.f .. 'j'

-- beyond orders ids as the server does where scores are equal.
local function beyond(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local from = 0
if after ~= '' then
  if tonumber(call('ZSCORE', key, after) or nil) == tonumber(at) then
    from, after = call('ZRANK', key, after) + 1, ''
  else
    from = call('ZCOUNT', key, '-inf', '(' .. at) -- it has gone: of its time are those with a larger id left
  end
end
local out, bytes, last = {}, 0, {}
local ids = call('ZRANGE', key, from, from + most - 1, 'WITHSCORES')
for i = 1, #ids, 2 do
  local id, sent = ids[i], ids[i + 1]
  last = { sent, id }
  local j = (after == '' or tonumber(sent) ~= tonumber(at) or beyond(id, after)) and load(q, id)
  local state, till
  if j then state, till = stateOf(q, id, j) end
  if state == 'active' then
    till = tonumber(call('ZSCORE', q.f .. 'l', id) or NOW + call('PTTL', q.p .. id .. ':lock'))
    till = math.ceil(till)
  end
  if state == 'waiting' or state == 'delayed' or state == 'active' then
    local f = call('HGETALL', q.p .. id)
    out[#out + 1] = { id, state, till and int(till) or '0', f }
    for n = 1, #f do bytes = bytes + #f[n] end
  end
  if bytes > 4194304 then break end
end
return { out, done(), counts(), int(NOW), last }
