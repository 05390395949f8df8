-- Receive, of a queue in which nothing but plain messages wait, without any rule: with
-- few commands what receive.lua does with many. Where it is another queue, or time has
-- something to do, it does nothing, and says so; then receive.lua does it.
--
--   wait ──▶ active, with a lock and a lease
--
-- ARGV: queue, most, lease in ms, token (each gets it with a number), worker's name
-- Keys: meta, wait, active, prioritized, delayed, limiter, job, lock, marker, events, our
-- lanes, leases and rates, and when time does something.
-- Gives what receive.lua gives, but data beside the other strings of a delivery, not among
-- them; or slow.

local q, most, lease, token, worker = queue(arg()), num(), num(), arg(), arg()
local due = tonumber(call('ZSCORE', G .. 'due', q.name) or nil)
local delayed = tonumber(call('ZRANGE', q.delayed, 0, 0, 'WITHSCORES')[2])
delayed = delayed and math.floor(delayed / 4096)
if due and due <= NOW or delayed and delayed <= NOW then return slow() end
if q.paused or q.most or q.max or call('EXISTS', q.prio, q.p .. 'limiter', q.f .. 't:', q.f .. 'turn') > 0
  or call('HEXISTS', q.f .. 's', 'rc') == 1 then
  return slow(true)
end

-- The oldest of the list. Messages that failed before are not plain, nor are Node jobs.
local ids, found, bytes = call('LRANGE', q.wait, -most, -1), {}, 0
for i = #ids, 1, -1 do
  local f = call('HMGET', q.p .. ids[i], 'name', 'data', 'timestamp', 'priority', 'fb', 'fbb', 'ats', 'fbd', 'atm', 'fbr', 'fbz', 'defa')
  if not f[5] or f[9] or f[10] or f[11] or f[12] then return slow(not f[5]) end
  found[#found + 1] = f
  bytes = bytes + #f[2]
  if bytes >= 16777216 then break end
end

local out, ends = {}, NOW + lease
if #found > 0 then
  local active, leases, text, jobs = {}, {}, lives(lease), {}
  local last, zeros = int(ends - 1) .. '.', { '00', '0', '' }
  for n, f in ipairs(found) do
    local number, id, name = int(n), ids[#ids + 1 - n], f[1]
    local key = q.p .. id
    call('SET', key .. ':lock', token .. '.' .. number, 'PX', text)
    local d = f[8] and int(f[8] + 1) or '1'
    call('HSET', key, 'processedOn', NOWS, 'ats', f[7] and int(f[7] + 1) or '1', 'fbd', d, 'pb', worker)
    event(q, 'active', id, 'prev', 'waiting')
    if head(f[5]).job then
      jobs[name] = jobs[name] or { job = true, name = name }
      note(q, id, jobs[name], 'started', 'active')
    end
    -- In the order of the numbers, which are three digits at most, within the last ms.
    active[n], leases[2 * n - 1], leases[2 * n] = id, last .. zeros[#number] .. number, id
    out[2 * n - 1], out[2 * n] = cmsgpack.pack(id, d, name, '', f[3], f[4], f[5], '0', f[6] or ''), f[2]
  end
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
return { out, nextOfAll(), {}, int(NOW), { due and int(due) or '0' } }
