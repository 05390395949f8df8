-- Sweep: queues of which time alone does something are brought up to now, and active
-- jobs without a lock wait again.
--
--   active, lease over ──▶ wait        delayed, due ──▶ wait | prioritized | lane
--   fb:j, gone by somebody else ──▶ nothing
--   waiting, too late ──▶ failed       active by a Node worker, no lock ──▶ wait
--
-- ARGV: most per queue, number of queues, their names; none: those that are due, up to 20
-- Keys: those of lib/70_due.lua, stalled, stalled-check, fb:j, fb:k.
-- Gives queues that were obliterated, and 1 where more is to be tidied.

local most, names = num(), {}
for i = 1, num() do names[i] = arg() end
local check = #names > 0
if not check then names = call('ZRANGEBYSCORE', G .. 'due', '-inf', NOW, 'LIMIT', 0, 20) end

-- stalled does what any BullMQ worker does from time to time, one of them for all:
-- what was active at the last check and has no lock now has lost its worker.
local function stalled(q)
  if not call('SET', q.p .. 'stalled-check', int(NOW), 'PX', 30000, 'NX') then return end
  for _, id in ipairs(call('SRANDMEMBER', q.p .. 'stalled', 1000)) do
    call('SREM', q.p .. 'stalled', id)
    if not call('ZSCORE', q.f .. 'l', id) and call('EXISTS', q.p .. id .. ':lock') == 0 and call('LREM', q.active, 1, id) > 0 then
      local j = load(q, id)
      if j then
        local times = call('HINCRBY', q.p .. id, 'stc', 1)
        local scheduled = call('HGET', q.p .. id, 'rjk')
        if times > 1 and not scheduled then call('HSET', q.p .. id, 'defa', 'job stalled more than allowable limit') end
        enqueue(q, id, j, true, 'active')
        event(q, 'stalled', id)
      end
    end
  end
  for from = 0, 9000, 1000 do
    local ids = call('LRANGE', q.active, from, from + 999)
    if #ids > 0 then call('SADD', q.p .. 'stalled', unpack(ids)) end
    if #ids < 1000 then break end
  end
end

-- tidy lets go of what Node clients have finished or removed, where there is much of it.
-- A queue that was obliterated is told: nothing of ours should stay of it.
local gone = {}
local function tidy(q)
  if call('EXISTS', q.p .. 'meta') == 0 then
    if call('SISMEMBER', G .. 'q', q.name) == 1 then gone[#gone + 1] = q.name end -- else it has never had anything
    return
  end
  if call('ZCARD', q.f .. 'j') <= unfinished(q) + 100 then return end
  local page = call('ZSCAN', q.f .. 'j', call('HGET', q.f .. 's', 'scan') or '0', 'COUNT', 500)
  call('HSET', q.f .. 's', 'scan', page[1])
  for i = 1, #page[2], 2 do
    local id = page[2][i]
    local at = call('HMGET', q.p .. id, 'name', 'finishedOn')
    if not at[1] then missed(q, id) elseif at[2] then unlists(q, id) end
  end
  gone.more = true
end

-- ghosts are dead letters that Node clients took away: where there are some, a page is
-- looked at each time.
local function ghosts(q)
  local s = call('HMGET', q.f .. 's', 'cancelled', 'expired', 'ghosts')
  if call('ZCARD', q.f .. 'dead') + (s[1] or 0) + (s[2] or 0) <= call('ZCARD', q.p .. 'failed') then return end
  local page = call('ZSCAN', q.f .. 'dead', s[3] or '0', 'COUNT', 500)
  call('HSET', q.f .. 's', 'ghosts', page[1])
  for i = 1, #page[2], 2 do
    if not call('ZSCORE', q.p .. 'failed', page[2][i]) then haunts(q, page[2][i], int(tonumber(page[2][i + 1]))) end
  end
end

-- rests tells of a queue that it has nothing but what has finished, and that only when
-- its time comes: most queues of many.
local function rests(name)
  local p = PRE .. ':' .. name .. ':'
  local f, due = p .. 'fb:', tonumber(call('ZSCORE', G .. 'due', name) or nil)
  return not (due and due <= NOW) and (call('EXISTS', p .. 'meta') == 1 or call('SISMEMBER', G .. 'q', name) == 0)
    and call('EXISTS', p .. 'wait', p .. 'paused', p .. 'active', p .. 'prioritized', p .. 'delayed', p .. 'waiting-children', p .. 'stalled',
      p .. 'failed', f .. 'j', f .. 'l', f .. 'd', f .. 'p', f .. 'rr', f .. 'dead') == 0
end

local some = {}
for _, name in ipairs(names) do
  if not check or not rests(name) then some[#some + 1] = name end
end
for _, name in ipairs(some) do
  local q = queue(name)
  advance(q, most)
  adopt(q)
  if check then
    stalled(q)
    tidy(q)
    ghosts(q)
    q.wakePlain, q.wakeLane, q.wakeDelay = true, true, not hasPlain(q) -- a marker that was lost is there again
  end
end
return { gone, done(), counts(), int(NOW), { gone.more and 1 or 0 } }
