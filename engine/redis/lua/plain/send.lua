-- Send, of plain messages that are new: with few commands what send.lua does with many.
-- Where one of them is not new it does nothing, and says so; then send.lua does it.
--
--   (nothing) ──▶ wait
--
-- ARGV: number of messages, then each: its strings in MessagePack as in lib/80_send.lua
-- but for its data, and that. (A script reads all bytes of a string that it makes: data
-- among the strings would be read twice.)
-- Keys: id, meta, job, wait, marker, events, fb:j of their queues, the records of ids.
-- Gives nothing, or slow.

local all, keys, records, seen, tils = {}, {}, {}, {}, {}
for i = 1, num() do
  local v = { cmsgpack.unpack(arg()) } -- queue, id, name, how data holds it, opts, fb, fingerprint, window
  v[9] = arg()
  local queueName, id, window = v[1], v[2], v[8]
  if seen[id] then return slow() end
  seen[id] = true
  if not tils[window] then tils[window] = int(NOW + tonumber(window)) .. '|' end
  all[i], keys[i] = v, PRE .. ':' .. queueName .. ':' .. id
  records[2 * i - 1], records[2 * i] = G .. 'i:' .. id, tils[window] .. v[7] .. '|' .. queueName .. '|'
end
if call('EXISTS', unpack(keys)) > 0 or call('MSETNX', unpack(records)) == 0 then return slow() end

local jobs = {} -- what note is to know of those of a name
for i, v in ipairs(all) do
  local q, id, name, key = queue(v[1]), v[2], v[3], keys[i]
  call('HSET', key, 'name', name, 'data', v[9], 'opts', v[5], 'timestamp', NOWS, 'delay', '0', 'priority', '0', 'fb', v[6])
  if v[4] ~= '' then call('HSET', key, 'fbb', v[4]) end
  event(q, 'added', id, 'name', name)
  call('XADD', q.events, '*', 'event', 'waiting', 'jobId', id)
  if head(v[6]).job then
    jobs[name] = jobs[name] or { job = true, name = name }
    note(q, id, jobs[name], 'added', 'waiting')
  end
  if not q.push then q.push, q.listed = {}, {} end
  local n = #q.push
  q.push[n + 1], q.listed[2 * n + 1], q.listed[2 * n + 2] = id, NOWS, id
end
for _, q in ipairs(touched) do
  call('LPUSH', q.wait, unpack(q.push))
  call('ZADD', q.f .. 'j', unpack(q.listed))
  call('INCRBY', q.p .. 'id', #q.push)
  call('SADD', G .. 'q', q.name)
  if not stopped(q) then call('ZADD', q.p .. 'marker', 0, '0') end
end
writeNotes()
return { {}, '0', {}, int(NOW), {} }
