-- Schedule: the next run of a BullMQ job scheduler, made by whoever picked up this one.
--
--   (nothing) ──▶ delayed | wait, and the time of the next run in repeat
--
-- It acts only for the run that is the scheduler's current one, so that of several calls
-- one does. Missed times of `every` are skipped to the next one in its grid.
--
-- ARGV: queue, id of the scheduler, id of this run, time of the next by its pattern in ms
-- (0: it runs by `every`)
-- Keys: repeat, repeat:<id>, job of this run and of the next, id, delayed, wait, marker,
-- events.
-- Gives the id of the next run, or nothing.

local q, name, run, at = queue(arg()), arg(), arg(), num()
local key = q.p .. 'repeat:' .. name
local s = call('HMGET', key, 'name', 'data', 'every', 'offset', 'limit', 'endDate')
local prev = tonumber(call('ZSCORE', q.p .. 'repeat', name))
local function none() return { {}, done(), counts(), int(NOW) } end
if not s[1] or not prev or run ~= 'repeat:' .. name .. ':' .. int(prev) then return none() end
local every = tonumber(s[3])
if every then
  at = prev + every
  if at < NOW then
    at = math.floor(NOW / every) * every + tonumber(s[4] or 0)
    if at <= NOW then at = at + every end
  end
elseif at == 0 then
  return none()
end
local opts = cjson.decode(call('HGET', q.p .. run, 'opts') or '{}')
opts['repeat'] = opts['repeat'] or {}
local count = (tonumber(opts['repeat'].count) or 0) + 1
if s[5] and count > tonumber(s[5]) or s[6] and NOW > tonumber(s[6]) then return none() end
local id = 'repeat:' .. name .. ':' .. int(at)
if call('EXISTS', q.p .. id) == 1 then
  event(q, 'duplicated', id)
  return none()
end
local delay = math.max(0, at - NOW)
opts['repeat'].count, opts.prevMillis, opts.jobId, opts.delay, opts.repeatJobKey = count, at, id, delay, name
opts.timestamp = NOW
call('ZADD', q.p .. 'repeat', at, name)
call('HINCRBY', key, 'ic', 1)
call('INCR', q.p .. 'id')
call('HSET', q.p .. id, 'name', s[1], 'data', s[2] or '{}', 'opts', cjson.encode(opts), 'timestamp', NOW, 'delay', delay,
  'priority', opts.priority or 0, 'rjk', name)
event(q, 'added', id, 'name', s[1])
local j = load(q, id)
if delay > 0 then postpone(q, id, j, at) else enqueue(q, id, j, opts.lifo) end
return { { id }, done(), counts(), int(NOW) }
