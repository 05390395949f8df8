-- What leaves after its end, and for how long it is kept.

local kept = {} -- by their text: most jobs of a script are kept alike
local function keeps(j)
  local k = kept[j.keep or '']
  if not k then
    local v = {}
    for s in string.gmatch(j.keep or '', '[^,]+') do v[#v + 1] = tonumber(s) end
    k = { age = v[1] or 0, count = v[2] or 0, none = v[3] == 1, deadAge = v[4] or 0, deadCount = v[5] or 0, noDead = v[6] == 1 }
    kept[j.keep or ''] = k
  end
  return k
end

-- keepAsNode takes over how long a Node producer wants a job kept: removeOnComplete and
-- removeOnFail are true, a number, or an age in seconds and a number; none: for ever.
local function keepAsNode(q, id, j)
  local opts = not j.ours and call('HGET', q.p .. id, 'opts') or ''
  if not string.find(opts, '"removeOn', 1, true) then return end
  local o = cjson.decode(opts)
  local function read(v)
    if type(v) ~= 'table' then v = { count = v == true and 0 or tonumber(v) } end
    local age, count = tonumber(v.age) or 0, tonumber(v.count)
    return int(math.ceil(math.max(age, 0) * 1000)) .. ',' .. int(math.max(count or 0, 0)), count == 0 and '1' or '0'
  end
  local ok, none = read(o.removeOnComplete)
  local dead, noDead = read(o.removeOnFail)
  j.keep = ok .. ',' .. none .. ',' .. dead .. ',' .. noDead
end

local function delKeys(q, id)
  local k = q.p .. id
  call('DEL', k, k .. ':lock', k .. ':logs', k .. ':dependencies', k .. ':processed', k .. ':failed', k .. ':unsuccessful')
end

-- undead takes a dead letter from the lists of them. Those that have been grouped by
-- their cause (deadput.lua) are counted by group:
--
--   ::fb:di       the group of a number
--   ::fb:dm:<g>   the numbers of a group       ::fb:dg:<g>  what it is about
--   ::fb:dn       groups by the newest number that they have had    ::fb:dc  by how many
local function undead(q, id, seq)
  call('ZREM', q.f .. 'dead', id)
  call('ZREM', G .. 'dead', q.name .. ':' .. id)
  local g = call('HGET', G .. 'di', seq)
  if not g then return end
  call('HDEL', G .. 'di', seq)
  call('ZREM', G .. 'dm:' .. g, seq)
  local n = call('ZCARD', G .. 'dm:' .. g)
  if n > 0 then
    call('ZADD', G .. 'dc', n, g)
  else
    call('DEL', G .. 'dg:' .. g)
    call('ZREM', G .. 'dn', g)
    call('ZREM', G .. 'dc', g)
  end
end

-- forget drops a finished job and all that is known of it.
local function forget(q, id, j)
  call('ZREM', q.p .. 'completed', id)
  call('ZREM', q.p .. 'failed', id)
  call('ZREM', q.f .. 'e', id)
  call('ZREM', q.f .. 'x', id)
  if j.dead then undead(q, id, j.dead) end
  if j.final == 'cancelled' or j.final == 'expired' then call('HINCRBY', q.f .. 's', j.final, -1) end
  delKeys(q, id)
  fade(G .. 'i:' .. id, id)
  if j.key then keyFades(q, id, j) end
end

-- A finished job whose id is sent again, past its window, is told of no more while the
-- new one is there. If that leaves no record (it is purged, discarded or not to be kept),
-- the old one is told of again: until then its id ends with %~.
local function rename(q, from, to)
  for _, set in ipairs({ q.p .. 'completed', q.p .. 'failed', q.f .. 'e', q.f .. 'x' }) do
    local score = call('ZSCORE', set, from)
    if score then
      call('ZREM', set, from)
      call('ZADD', set, score, to)
    end
  end
  call('RENAME', q.p .. from, q.p .. to)
  if call('EXISTS', q.p .. from .. ':logs') == 1 then call('RENAME', q.p .. from .. ':logs', q.p .. to .. ':logs') end
end

local function retire(q, id)
  local older = load(q, id .. '%~')
  if older then forget(q, id .. '%~', older) end
  rename(q, id, id .. '%~')
end

local function revive(q, id)
  if call('EXISTS', q.p .. id .. '%~') == 0 then return end
  rename(q, id .. '%~', id)
  if call('PERSIST', G .. 'i:' .. id) == 0 and call('EXISTS', G .. 'i:' .. id) == 0 then
    call('SET', G .. 'i:' .. id, '0||' .. q.name .. '|')
  end
end

-- thin drops of some, of which count others are newer, those that their own bound lets go of.
local function thin(q, beyond, count, field)
  for i, id in ipairs(beyond) do
    local j = load(q, id)
    if j then
      local most = keeps(j)[field]
      if most > 0 and count + i > most then
        if j.final == 'dead' then note(q, id, j, 'discarded', '', 'x', 'kept as long as its retention says: count') end
        forget(q, id, j)
      end
    end
  end
end

-- thinDead does so for dead letters, a few each time.
local function thinDead(q, count)
  thin(q, call('ZREVRANGE', q.f .. 'dead', count, count + 9), count, 'deadCount')
end

-- thinFinished does so for what else has finished, the newest count of which lie in
-- completed and in fb:e. Where the two part is searched for by halves.
local function thinFinished(q, count, most)
  local completed, others = q.p .. 'completed', q.f .. 'e'
  local have, beside = call('ZCARD', completed), call('ZCARD', others)
  if have + beside <= count then return end
  local low, high = math.max(count - beside, 0), math.min(count, have)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local score = call('ZREVRANGE', completed, middle, middle, 'WITHSCORES')[2]
    if middle + call('ZCOUNT', others, '(' .. score, '+inf') >= count then high = middle else low = middle + 1 end
  end
  local beyond = call('ZREVRANGE', completed, low, low + most)
  for _, id in ipairs(call('ZREVRANGE', others, count - low, count - low + most)) do beyond[#beyond + 1] = id end
  thin(q, beyond, count, 'count')
end

-- thinNode is thin for jobs of Node producers, as BullMQ does it: all of them beyond the
-- number leave, whoever finished them. Ours among them have their own bounds.
local function thinNode(q, set, count)
  local beyond = call('ZCARD', set) - count
  if beyond <= 0 then return end
  for _, id in ipairs(call('ZRANGE', set, 0, math.min(beyond, 100) - 1)) do
    local j = load(q, id)
    if j and not j.ours then forget(q, id, j) end
  end
end
