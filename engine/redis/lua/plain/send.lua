-- Send, of plain messages that are new: with few commands what send.lua does with many.
-- Where one of them is not new it does nothing, and says so; then send.lua does it.
--
--   (nothing) ──▶ wait
--
-- ARGV: number of runs of messages that have a head in common, then each run: how many,
-- the head, and each message: its id, fingerprint and data. The head is strings of
-- MessagePack: queue, name, how data holds the payload, opts up to the id, fb, window.
-- (A script reads all bytes of each string that it makes, so few are made.)
-- Keys: id, meta, job, wait, marker, events, fb:j of their queues, the records of ids.
-- Gives nothing, or slow.

local runs, heads, ids, datas, keys, records, seen, n = {}, {}, {}, {}, {}, {}, {}, 0
for _ = 1, num() do
  local count, name = num(), nil
  local h = { q = false, name = false, enc = false, opts = false, fb = false, job = false }
  name, h.name, h.enc, h.opts, h.fb, h.window = cmsgpack.unpack(arg())
  h.q = queue(name)
  h.job = head(h.fb).job and { job = true, name = h.name }
  local prefix, til, rest = h.q.p, int(NOW + tonumber(h.window)) .. '|', '|' .. name .. '|'
  runs[#runs + 1] = { h = h, from = n + 1, to = n + count }
  for _ = 1, count do
    local id, print = arg(), arg()
    if seen[id] then return slow() end
    n = n + 1
    seen[id], heads[n], ids[n], datas[n], keys[n] = true, h, id, arg(), prefix .. id
    records[2 * n - 1], records[2 * n] = G .. 'i:' .. id, til .. print .. rest
  end
end
if call('EXISTS', unpack(keys)) > 0 or call('MSETNX', unpack(records)) == 0 then return slow() end

for i = 1, n do
  local h, id, key = heads[i], ids[i], keys[i]
  local q = h.q
  call('HSET', key, 'name', h.name, 'data', datas[i], 'opts', h.opts .. id .. '"}', 'timestamp', NOWS, 'delay', '0', 'priority', '0', 'fb', h.fb)
  if h.enc ~= '' then call('HSET', key, 'fbb', h.enc) end
  if q.push then
    call('XADD', q.events, '*', 'event', 'added', 'jobId', id, 'name', h.name)
  else
    event(q, 'added', id, 'name', h.name)
    q.push, q.listed = {}, {}
  end
  call('XADD', q.events, '*', 'event', 'waiting', 'jobId', id)
  local n = #q.push
  q.push[n + 1], q.listed[2 * n + 1], q.listed[2 * n + 2] = id, NOWS, id
end
for _, r in ipairs(runs) do noteRun(r.h.q, ids, r.from, r.to, r.h.job, 'added', 'waiting') end
for _, q in ipairs(touched) do
  call('LPUSH', q.wait, unpack(q.push))
  call('ZADD', q.f .. 'j', unpack(q.listed))
  call('INCRBY', q.p .. 'id', #q.push)
  call('SADD', G .. 'q', q.name)
  if not stopped(q) then call('ZADD', q.p .. 'marker', 0, '0') end
end
writeNotes()
return { {}, '0', {}, int(NOW), {} }
