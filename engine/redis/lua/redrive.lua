-- Replay, Discard: dead letters wait again, or are gone.
--
--   failed ──replay──▶ wait | prioritized | lane, attempts and hand-outs from zero
--          ──discard──▶ gone
--
-- ARGV: replay or discard, number of dead letters, their numbers in the order of dying
-- Keys: fb:dead, failed, job, wait, prioritized, marker, events; records of dedup.
-- Gives for each 1, or 0 where there is no such one.

local what, out = arg(), {}

local function replay(q, id, j)
  local key = q.p .. id
  call('ZREM', q.p .. 'failed', id)
  call('ZREM', q.f .. 'dead', id)
  call('ZREM', G .. 'dead', q.name .. ':' .. id)
  call('ZREM', q.f .. 'x', id)
  call('HDEL', key, 'fbz', 'fbq', 'fbu', 'fbp', 'fbc', 'finishedOn', 'processedOn', 'failedReason', 'stacktrace', 'defa', 'stc',
    'progress', 'fbf0', 'fbf1', 'fbf2', 'fbf3', 'fbf4', 'fbf5', 'fbf6', 'fbf7', 'fbf8', 'fbf9')
  j.final, j.dead, j.place, j.stop, j.d, j.atm, j.at = nil, nil, nil, nil, 0, 0, NOW
  call('HSET', key, 'atm', 0, 'ats', 0, 'fbd', 0, 'timestamp', NOW, 'delay', 0)
  if special(j) then
    j.seq = call('HINCRBY', q.f .. 's', 'seq', 1)
    call('HSET', key, 'fbs', j.seq)
    if j.g then call('ZADD', q.f .. 'g:' .. j.g, j.seq, id) end
  end
  local at = j.expires > 0 and j.expires or j.deadline
  if at > 0 then call('ZADD', q.f .. 'x', at, id) end
  if j.parentKey and call('EXISTS', j.parentKey) == 1 then
    call('ZREM', j.parentKey .. ':unsuccessful', key)
    call('HDEL', j.parentKey .. ':failed', key)
    call('SADD', j.parentKey .. ':dependencies', key)
  end
  lists(q, id, j)
  note(q, id, j, 'replayed', 'waiting')
  enqueue(q, id, j, false, 'failed')
end

for i = 1, num() do
  local seq = arg()
  local at = call('ZRANGEBYSCORE', G .. 'dead', seq, seq)[1]
  out[i] = 0
  if at then
    local name, id = string.match(at, '^([^:]*):(.*)$')
    local q = queue(name)
    local j = load(q, id)
    if j and call('ZSCORE', q.p .. 'failed', id) then
      out[i] = 1
      if what == 'replay' then
        replay(q, id, j)
      else
        note(q, id, j, 'discarded', '')
        event(q, 'removed', id, 'prev', 'failed')
        forget(q, id, j)
        revive(q, id)
      end
    end
  end
end
return { out, done(), counts(), int(NOW) }
