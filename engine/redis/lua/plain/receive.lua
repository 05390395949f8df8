-- Receive, of a queue in which nothing but plain messages wait that nobody has begun, without
-- any rule: with few commands what receive.lua does with many. Where it is another queue, or
-- time has something to do, it does nothing, and says so; then receive.lua does it.
--
--   wait ──▶ active, with a lock and a lease
--
-- ARGV: queue, most, lease in ms, token (each gets it with a number), worker's name
-- Keys: meta, wait, active, prioritized, delayed, limiter, job, lock, marker, events, our
-- lanes, leases and rates, and when time does something.
-- Gives for each id, timestamp, data, and the number of its head; or slow. Beside: when this
-- queue may have something again, and the heads, which most have in common: name, fb, and
-- how data holds the payload, as strings of MessagePack.

local q, most, lease, token, worker = queue(arg()), num(), num(), arg(), arg()
local due = tonumber(call('ZSCORE', G .. 'due', q.name) or nil)
local delayed = tonumber(call('ZRANGE', q.delayed, 0, 0, 'WITHSCORES')[2])
delayed = delayed and math.floor(delayed / 4096)
if due and due <= NOW or delayed and delayed <= NOW then return slow() end
if q.paused or q.most or q.max or call('EXISTS', q.prio, q.p .. 'limiter', q.f .. 't:', q.f .. 'turn') > 0
  or call('HEXISTS', q.f .. 's', 'rc') == 1 then
  return slow(true)
end

-- The oldest of the list. A message that was begun before has more fields than the seven
-- that it is sent with, or eight, and so has one of which Node has told more.
local ids, found, keys, bytes = call('LRANGE', q.wait, -most, -1), {}, {}, 0
for i = #ids, 1, -1 do
  local key = q.p .. ids[i]
  local f = call('HMGET', key, 'name', 'data', 'timestamp', 'fb', 'fbb')
  if not f[4] or call('HLEN', key) ~= (f[5] and 8 or 7) then return slow(not f[4]) end
  local n = #found + 1
  found[n], keys[n] = f, key
  bytes = bytes + #f[2]
  if bytes >= 16777216 then break end
end

local out, beside, ends = {}, { '0' }, NOW + lease
if #found > 0 then
  local active, leases, text, last, begun, run = {}, {}, lives(lease), {}, 1, nil
  local events, numbered, score, zeros = q.events, token .. '.', int(ends - 1) .. '.', { '00', '0', '' }
  local named = worker ~= ''
  for n, f in ipairs(found) do
    local number, id, name, key = int(n), ids[#ids + 1 - n], f[1], keys[n]
    call('SET', key .. ':lock', numbered .. number, 'PX', text)
    if named then
      call('HSET', key, 'processedOn', NOWS, 'ats', '1', 'pb', worker)
    else
      call('HSET', key, 'processedOn', NOWS, 'ats', '1')
    end
    if n == 1 then
      event(q, 'active', id, 'prev', 'waiting')
    else
      call('XADD', events, '*', 'event', 'active', 'jobId', id, 'prev', 'waiting')
    end
    -- In the order of the numbers, which are three digits at most, within the last ms.
    active[n], leases[2 * n - 1], leases[2 * n] = id, score .. zeros[#number] .. number, id
    if name ~= last[1] or f[4] ~= last[4] or f[5] ~= last[5] then
      noteRun(q, active, begun, n - 1, run, 'started', 'active')
      beside[#beside + 1] = cmsgpack.pack(name, f[4], f[5] or '')
      last, begun, run = f, n, { job = head(f[4]).job, name = name }
    end
    out[4 * n - 3], out[4 * n - 2], out[4 * n - 1], out[4 * n] = id, f[3], f[2], #beside - 1
  end
  noteRun(q, active, begun, #found, run, 'started', 'active')
  call('RPOP', q.wait, #found)
  call('LPUSH', q.active, unpack(active))
  call('ZADD', q.f .. 'l', unpack(leases))
  if not due or ends < due then
    call('ZADD', G .. 'due', ends, q.name)
    due = ends
  end
  if #found < #ids or call('EXISTS', q.wait) == 1 then call('ZADD', q.p .. 'marker', 0, '0') end
  writeNotes()
end
if delayed and (not due or delayed < due) then due = delayed end
if due then beside[1] = int(due) end
return { out, nextOfAll(), {}, int(NOW), beside }
