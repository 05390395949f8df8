-- SetLimits: what bounds the hand-outs of a queue. Pause and the number of active ones
-- are BullMQ's own, so that Node workers keep them too; the rate is told to them as
-- BullMQ's limiter, which is coarser.
--
--   meta paused, concurrency, max, duration ◀── limits ──▶ fb:s
--
-- ARGV: queue, paused, active, then of the queue's rate count, ms, burst, most active of
-- a key, the same of a key's rate, and the limits as JSON
-- Keys: meta, marker, events, fb:s, lanes that were held up (1,000 a call).
-- Gives how many lanes are held up still: the caller comes again.

local q = queue(arg())
local paused, active = arg() == '1', num()
local rc, rp, rb, ka, kc, kp, kb, json = num(), num(), num(), num(), num(), num(), num(), arg()
local meta, s = q.p .. 'meta', q.f .. 's'
local changes = paused ~= q.paused
if changes then call('XADD', q.events, '*', 'event', paused and 'paused' or 'resumed') end
call('SADD', G .. 'q', q.name)
local function set(key, on, ...)
  if on then
    call('HSET', key, ...)
  else
    local v = { ... }
    for i = 1, #v, 2 do call('HDEL', key, v[i]) end
  end
end
set(meta, paused, 'paused', 1)
set(meta, active > 0, 'concurrency', active)
set(meta, rc > 0, 'max', rc, 'duration', math.ceil(rp))
set(s, rc > 0, 'rc', rc, 'rp', rp, 'rb', rb)
set(s, kc > 0, 'kc', kc, 'kp', kp, 'kb', kb)
set(s, ka > 0, 'ka', ka)
set(s, json ~= '', 'json', json)
if rc == 0 then call('DEL', q.f .. 'r', q.p .. 'limiter') end
q.paused, q.most = paused, active > 0 and active or nil
if paused then
  call('DEL', q.p .. 'marker', q.f .. 'marker')
else
  if changes and hasPlain(q) then call('ZADD', q.p .. 'marker', 0, '0') end -- as BullMQ, also where enough are active
  q.wakePlain, q.wakeLane, q.wakeDelay = true, true, not hasPlain(q)
end
for _, at in ipairs(call('SRANDMEMBER', q.f .. 'bl', 1000)) do unblock(q, string.match(at, '\n(.*)$')) end
return { { call('SCARD', q.f .. 'bl') }, done(), counts(), int(NOW) }
