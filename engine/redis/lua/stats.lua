-- Stats: what queues hold, after each is brought up to now.
--
-- ARGV: number of queues, their names; none: all that are known
-- Keys: wait, paused, active, prioritized, delayed, failed; our lanes and dead letters.
-- Gives for each: name, waiting, active, delayed, dead, when the oldest was sent.

local names = {}
for i = 1, num() do names[i] = arg() end
if #names == 0 then
  names = call('SMEMBERS', G .. 'q')
  table.sort(names)
end
local out = {}
for i, name in ipairs(names) do
  local q = queue(name)
  advance(q, 1000)
  adopt(q)
  local oldest
  local function older(id)
    local at = id and tonumber(call('HGET', q.p .. id, 'timestamp') or nil)
    if at and (not oldest or at < oldest) then oldest = at end
  end
  older(call('LINDEX', q.wait, -1))
  older(call('LINDEX', q.p .. 'paused', -1))
  older(call('ZRANGE', q.f .. 'p', 0, 0)[1])
  if call('ZCARD', q.prio) > 0 then
    for p = 1, 11 do
      local top = p > 10 and '+inf' or '(' .. int((p + 1) * 4294967296)
      older(call('ZRANGEBYSCORE', q.prio, int(p * 4294967296), top, 'LIMIT', 0, 1)[1])
    end
  end
  out[i] = {
    name,
    call('LLEN', q.wait) + call('LLEN', q.p .. 'paused') + call('ZCARD', q.prio) + call('ZCARD', q.f .. 'p'),
    call('LLEN', q.active), call('ZCARD', q.delayed) + call('ZCARD', q.f .. 'd'), call('ZCARD', q.f .. 'dead'),
    oldest and int(oldest) or '0',
  }
end
return { out, done(), counts(), int(NOW) }
