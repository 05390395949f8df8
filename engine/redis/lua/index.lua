-- Index: jobs that Node clients added are put into fb:j, beside those that we sent, so
-- that they can be listed: the newest 5,000 of each kind, where some are missing.
--
-- ARGV: number of queues, their names; none: all that are known
-- Keys: wait, paused, prioritized, delayed, waiting-children, active, job, fb:j, failed.
-- Gives for each queue: name, completed, cancelled, expired.

local names, out = {}, {}
for i = 1, num() do names[i] = arg() end
if #names == 0 then names = call('SMEMBERS', G .. 'q') end

local function take(q, ids)
  if #ids == 0 then return end
  local known = call('ZMSCORE', q.f .. 'j', unpack(ids))
  for i, id in ipairs(ids) do
    if not known[i] then
      local j = load(q, id)
      if j and not j.final then lists(q, id, j) end
    end
  end
end

local function each(kind, key, q)
  for from = 0, 4000, 1000 do
    local ids = call(kind, key, from, from + 999)
    take(q, ids)
    if #ids < 1000 then return end
  end
end

for i, name in ipairs(names) do
  local q = queue(name)
  adopt(q)
  if call('ZCARD', q.f .. 'j') ~= unfinished(q) then
    each('LRANGE', q.wait, q)
    each('LRANGE', q.p .. 'paused', q)
    each('LRANGE', q.active, q)
    each('ZRANGE', q.prio, q)
    each('ZRANGE', q.delayed, q)
    each('ZRANGE', q.p .. 'waiting-children', q)
  end
  local s = call('HMGET', q.f .. 's', 'cancelled', 'expired')
  out[i] = { name, call('ZCARD', q.p .. 'completed'), s[1] or '0', s[2] or '0' }
end
return { out, done(), counts(), int(NOW) }
