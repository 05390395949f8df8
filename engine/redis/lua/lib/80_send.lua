-- One message, from an argument, into its queue. In it are, as strings of MessagePack
-- (one argument costs less than many) and in this order:
-- queue, id, name, how data holds the payload, opts, fb, fingerprint, window, and for
-- others than plain ones due, priority, chain, limit key, tenant, key of the dedup record,
-- mode, expires, deadline, deid. The argument after it is the data.

local function readMessage()
  local v = { cmsgpack.unpack(arg()) }
  return {
    queue = v[1], id = v[2], name = v[3], data = arg(), enc = v[4], opts = v[5], fb = v[6], print = v[7], window = tonumber(v[8]),
    due = tonumber(v[9] or 0), prio = tonumber(v[10] or 0), g = v[11] or '', l = v[12] or '', t = v[13] or '', key = v[14] or '',
    mode = v[15] or '', expires = tonumber(v[16] or 0), deadline = tonumber(v[17] or 0), deid = v[18] or '',
  }
end

-- duplicate tells a second sender: 1, or 2 where it says something else.
local function duplicate(q, m, first, print)
  local conflict = print ~= m.print
  if first == m.id then
    event(q, 'duplicated', first)
  else
    event(q, 'deduplicated', first, 'deduplicationId', m.key, 'deduplicatedJobId', m.id)
  end
  return (conflict and '2|' or '1|') .. first
end

-- replace gives a job that waits the payload of another.
local function replace(q, m, id, j)
  call('HSET', q.p .. id, 'data', m.data, 'fbb', m.enc)
  local state = stateOf(q, id, j)
  if m.mode == 'd' and (m.due > NOW or state == 'delayed') then
    unqueue(q, id, j)
    if m.due > NOW then
      state = 'delayed'
      postpone(q, id, j, m.due)
    else
      state = 'waiting'
      enqueue(q, id, j, false, 'delayed')
    end
  end
  event(q, 'deduplicated', id, 'deduplicationId', m.deid, 'deduplicatedJobId', m.id)
  if state == 'delayed' then
    note(q, id, j, 'replaced', state, 'd', m.due)
  else
    note(q, id, j, 'replaced', state)
  end
  return '3|' .. id
end

-- sameKey finds the first with the dedup key, and what it makes of the second.
local function sameKey(q, m)
  local r = record(G .. m.key)
  if r then
    local rq, j, here, within = known(r)
    local waits = j ~= nil and not j.final -- it has not finished
    local dup
    if m.mode == '' then
      dup = here or within
    elseif m.mode == 't' then
      dup = within
    elseif m.mode == 'u' then
      dup = waits
    elseif m.mode == 'd' or m.mode == 'k' then
      if waits and stateOf(rq, r.id, j) ~= 'active' and (m.mode == 'k' or j.d == 0) then return replace(rq, m, r.id, j) end
    else
      dup = waits or within
    end
    if dup then return duplicate(rq, m, r.id, r.print) end
  end
  if m.deid == '' then return nil end
  local first = call('GET', q.p .. 'de:' .. m.deid)
  local j = first and load(q, first)
  if j and not j.ours then return duplicate(q, m, first, m.print) end
end

-- sameID finds the first with the id; else what is still known of one whose window has
-- passed, of which the new one takes the place.
local function sameID(q, m)
  local r = record(G .. 'i:' .. m.id)
  if not r then
    if call('EXISTS', q.p .. m.id) == 0 then return nil end
    return duplicate(q, m, m.id, call('HGET', q.p .. m.id, 'data') == m.data and m.print or '') -- a Node job
  end
  r.of = m.id
  local rq, j, here, within = known(r)
  if here or within then return duplicate(rq, m, m.id, r.print) end
  if j then return nil, rq, j end
end

-- store stores a message that is new.
local function store(q, m)
  local id, key = m.id, q.p .. m.id
  q.added = (q.added or 0) + 1
  local til = NOW + m.window
  local j = { name = m.name, ours = true, job = head(m.fb).job, d = 0, atm = 0, prio = m.prio, at = NOW, seq = 0 }
  local fields = { 'name', m.name, 'data', m.data, 'opts', m.opts, 'timestamp', NOWS, 'delay', '0', 'priority', int(m.prio), 'fb', m.fb }
  local function field(name, value)
    if value == '' then return nil end
    fields[#fields + 1] = name
    fields[#fields + 1] = value
    return value
  end
  field('fbb', m.enc)
  j.g, j.l, j.t = field('fbg', m.g), field('fbl', m.l), field('fbt', m.t)
  if special(j) or m.key ~= '' or m.expires > 0 or m.deadline > 0 then field('fbr', '1') end
  field('fbk', m.key)
  field('deid', m.deid)
  if m.expires > 0 then field('fbe', int(m.expires)) end
  if m.deadline > 0 then field('fbv', int(m.deadline)) end
  if special(j) then
    j.seq = call('HINCRBY', q.f .. 's', 'seq', 1)
    field('fbs', j.seq)
    if j.g then call('ZADD', q.f .. 'g:' .. j.g, j.seq, id) end
  end
  call('HSET', key, unpack(fields))
  local says = int(til) .. '|' .. m.print .. '|' .. m.queue .. '|'
  call('SET', G .. 'i:' .. id, says)
  if m.key ~= '' then
    call('HSET', q.f .. 'k', id, m.key)
    call('SET', G .. m.key, says .. id)
  end
  if m.deid ~= '' then
    if m.mode == 't' then
      call('SET', q.p .. 'de:' .. m.deid, id, 'PX', int(math.max(m.window, 1)))
    else
      call('SET', q.p .. 'de:' .. m.deid, id)
    end
  end
  local at = m.expires > 0 and m.expires or m.deadline
  if at > 0 then call('ZADD', q.f .. 'x', at, id) end
  lists(q, id, j)
  event(q, 'added', id, 'name', m.name)
  if m.due > NOW then
    postpone(q, id, j, m.due)
    note(q, id, j, 'added', 'delayed', 'd', m.due)
  else
    enqueue(q, id, j, false)
    note(q, id, j, 'added', 'waiting')
  end
  return '0'
end

-- sendOne stores a message: 0, or what it is a duplicate of, and how.
local function sendOne(m)
  local q = queue(m.queue)
  unload(q)
  local dup, oldQueue, old = sameID(q, m)
  dup = dup or (m.key ~= '' and sameKey(q, m))
  if dup then return dup end
  if old then retire(oldQueue, m.id) end
  return store(q, m)
end
