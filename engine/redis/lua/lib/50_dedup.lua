-- Records that make a second message the same as a first.
--
--   ::fb:i:<id>           until, fingerprint, queue, and no id: of an id
--   ::fb:k:<key>          until, fingerprint, queue, id: of a dedup key of a message
--   ::fb:j:<queue>:<key>  the same of a job
--   de:<key> dn:<key>     BullMQ's own, with the field deid
--
-- A record without an end belongs to what is there; it gets one as soon as that has
-- gone, so that it never outlives both its message and its window.

local function record(key)
  local s = call('GET', key)
  if not s then return nil end
  local til, print, queueName, id = string.match(s, '^(%d+)|([^|]*)|([^|]*)|(.*)$')
  return { til = tonumber(til), print = print, queue = queueName, id = id }
end

-- known finds the first of a record: its job, whether it is still there, and whether
-- the window holds.
local function known(r)
  local q = queue(r.queue)
  unload(q)
  if r.id == '' then r.id = r.of end
  local j = load(q, r.id)
  local here = j ~= nil and (not j.final or j.final == 'dead')
  return q, j, here, NOW < r.til
end

-- fade gives a record its end.
local function fade(key, id)
  local r = record(key)
  if not r or (r.id ~= '' and r.id ~= id) then return end
  if r.til > NOW then call('PEXPIRE', key, lives(r.til - NOW)) else call('DEL', key) end
end

-- keyFades gives the dedup record of a job its end.
local function keyFades(q, id, j)
  fade(G .. j.key, id)
  call('HDEL', q.f .. 'k', id)
end

-- missed lets go of what somebody else took away, with its records.
local function missed(q, id)
  unlists(q, id)
  fade(G .. 'i:' .. id, id)
  local key = call('HGET', q.f .. 'k', id)
  if key then keyFades(q, id, { key = key }) end
end

-- keyEnds lets go of the dedup key of a job that has ended. A dead letter keeps its
-- record until it is forgotten: nobody is its duplicate but in its window, and once it
-- is replayed it has its key again, unless another has taken it meanwhile.
local function keyEnds(q, id, j, state)
  if j.key and state ~= 'dead' then keyFades(q, id, j) end
  if not j.deid then return end
  local de = q.p .. 'de:' .. j.deid
  if call('PTTL', de) == -1 and call('GET', de) == id then call('DEL', de) end
  local dn = q.p .. 'dn:' .. j.deid
  local v = call('HMGET', dn, 'name', 'data', 'opts', 'jid', 'pk', 'pd', 'pdk', 'rjk')
  if not v[1] then return end
  -- What a Node producer parked behind this job, to come when it has ended.
  call('DEL', dn)
  local new = v[4] or int(call('INCR', q.p .. 'id'))
  if call('EXISTS', q.p .. new) == 1 then return end
  local o = cjson.decode(v[3])
  local fields = { 'name', v[1], 'data', v[2], 'opts', v[3], 'timestamp', NOW, 'delay', o.delay or 0,
    'priority', o.priority or 0, 'deid', j.deid }
  for i, f in ipairs({ 'parentKey', 'parent' }) do
    if v[4 + i] then fields[#fields + 1] = f; fields[#fields + 1] = v[4 + i] end
  end
  if v[8] then fields[#fields + 1] = 'rjk'; fields[#fields + 1] = v[8] end
  call('HSET', q.p .. new, unpack(fields))
  if v[7] then call('SADD', v[7], q.p .. new) end
  local ttl = o.de and tonumber(o.de.ttl)
  if ttl and ttl > 0 and not o.de.keepLastIfActive then call('SET', de, new, 'PX', ttl) else call('SET', de, new) end
  event(q, 'added', new, 'name', v[1])
  local n = load(q, new)
  if n.delay > 0 then postpone(q, new, n, NOW + n.delay) else enqueue(q, new, n, o.lifo, nil) end
end
