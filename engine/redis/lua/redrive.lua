-- Replay, Discard, EndDead: dead letters wait again, or are gone.
--
--   failed ──replay──▶ wait | prioritized | lane, attempts and hand-outs from zero
--          ──discard──▶ gone, and a message may take its place
--
-- ARGV: replay or discard, number of dead letters, those in the order of dying: its number,
-- and to discard a reason, 1 where a message takes its place and else 0, and the message
-- Keys: fb:dead, failed, job, wait, prioritized, marker, events; records of dedup.
-- Gives for each 1, or 0 where there is no such one; answers of what was sent.

local what, out, sent = arg(), {}, {}

local function replay(q, id, j)
  local key = q.p .. id
  call('ZREM', q.p .. 'failed', id)
  undead(q, id, j.dead)
  call('ZREM', q.f .. 'x', id)
  call('HDEL', key, 'fbz', 'fbq', 'fbu', 'fbp', 'fbc', 'finishedOn', 'processedOn', 'failedReason', 'defa', 'stc', 'atm', 'ats',
    'fbf0', 'fbf1', 'fbf2', 'fbf3', 'fbf4', 'fbf5', 'fbf6', 'fbf7', 'fbf8', 'fbf9')
  j.final, j.dead, j.place, j.stop, j.d, j.atm, j.at = nil, nil, nil, nil, 0, 0, NOW
  call('HSET', key, 'fbd', 0, 'timestamp', NOW, 'delay', 0)
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

-- discard takes one away. The text of its event is the reason, or what took its place.
local function discard(q, id, j, reason, m)
  if m then
    note(q, id, j, 'replayed', '', 'x', 'as job ' .. m.id)
  elseif reason ~= '' then
    note(q, id, j, 'discarded', '', 'x', reason)
  else
    note(q, id, j, 'discarded', '')
  end
  event(q, 'removed', id, 'prev', 'failed')
  forget(q, id, j)
  revive(q, id)
  if not m then return end
  sent[#sent + 1] = m.queue
  sent[#sent + 1] = sendOne(m)
end

for i = 1, num() do
  local seq = arg()
  local reason = what == 'discard' and arg() or ''
  local m = what == 'discard' and arg() == '1' and readMessage() or nil
  local at = call('ZRANGEBYSCORE', G .. 'dead', seq, seq)[1]
  out[i] = 0
  if at then
    local name, id = string.match(at, '^([^:]*):(.*)$')
    local q = queue(name)
    local j = load(q, id)
    if j and j.dead and call('ZSCORE', q.p .. 'failed', id) then
      out[i] = 1
      if what == 'replay' then replay(q, id, j) else discard(q, id, j, reason, m) end
    end
  end
end
return { out, done(), counts(), int(NOW), sent }
