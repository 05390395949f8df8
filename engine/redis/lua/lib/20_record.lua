-- The record of a job: BullMQ's hash, with fields of ours beside.
--
--   fb   j for a job, with a ledger, or m for what nobody tracks; retention, if any: age,
--        count, none, age of dead, count of dead; "|"; and all of the message that
--        BullMQ has no field for, JSON. Absent: a Node job
--   fbb  how data holds the payload: absent as it is, b base64, e it is empty
--   fbg  chain: one after the other      fbl  limit key      fbt  tenant
--   fbs  number in the order of sending, of those with one of the three
--   fbp  where one of those waits: w in its lane, p parked behind its chain, d delayed
--   fbd  hand-outs, released ones not; absent: one, where BullMQ's ats says that it was begun
--   fbq  number as dead letter
--   fbz  final state; completed with a result is completed+
--   fbk  its dedup record
--   fbr  1: it has one of fbg, fbl, fbt, fbk, fbe, fbv
--   fbe  expires    fbv  deadline        fbc  asked to stop: "!" and the reason
--   fbu  why it ended    fbf0…fbf9  why its last attempts failed

local function ruled(j, f)
  j.g, j.l, j.t, j.place, j.key, j.seq = f.fbg, f.fbl, f.fbt, f.fbp, f.fbk, tonumber(f.fbs or 0)
  j.expires, j.deadline = tonumber(f.fbe or 0), tonumber(f.fbv or 0)
end

local foreign = { job = true, keep = '' }

local finals = { ['completed+'] = 'completed' }

-- handedOut counts hand-outs by fbd, or ats of one of ours.
local function handedOut(d, ats, ours)
  if d then return tonumber(d) end
  return ours and ats and ats ~= '0' and 1 or 0
end

-- recordOf makes a record of fields by name.
local function recordOf(f)
  local h = f.fb and head(f.fb) or foreign
  local j = {
    name = f.name, ours = h ~= foreign, job = h.job, keep = h.keep, d = handedOut(f.fbd, f.ats, h ~= foreign), final = finals[f.fbz] or f.fbz,
    dead = f.fbq, stop = f.fbc, prio = tonumber(f.priority or 0) or 0, at = tonumber(f.timestamp or 0) or 0, atm = tonumber(f.atm or 0),
    ats = tonumber(f.ats or 0), begun = f.processedOn, deid = f.deid, parentKey = f.parentKey, parent = f.parent, defa = f.defa,
    delay = tonumber(f.delay or 0) or 0, seq = 0, window = 0, expires = 0, deadline = 0,
  }
  if f.fbr then ruled(j, f) end
  return j
end

local usual = { 'name', 'fb', 'fbr', 'fbd', 'fbz', 'fbq', 'fbc', 'priority', 'timestamp', 'atm', 'ats', 'processedOn', 'deid',
  'parentKey', 'parent', 'defa', 'delay' }
local seldom = { 'fbg', 'fbl', 'fbt', 'fbs', 'fbp', 'fbk', 'fbe', 'fbv' }

local function load(q, id)
  local v = call('HMGET', q.p .. id, unpack(usual))
  if not v[1] then return nil end
  -- as recordOf, which would need a table of the fields first
  local h = v[2] and head(v[2]) or foreign
  local j = {
    name = v[1], ours = h ~= foreign, job = h.job, keep = h.keep, d = handedOut(v[4], v[11], h ~= foreign), final = finals[v[5]] or v[5] or nil,
    dead = v[6] or nil, stop = v[7] or nil, prio = tonumber(v[8] or 0) or 0, at = tonumber(v[9] or 0) or 0, atm = tonumber(v[10] or 0),
    ats = tonumber(v[11] or 0), begun = v[12] or nil, deid = v[13] or nil, parentKey = v[14] or nil, parent = v[15] or nil,
    defa = v[16] or nil, delay = tonumber(v[17] or 0) or 0, seq = 0, window = 0, expires = 0, deadline = 0,
  }
  if v[3] then
    local f = {}
    v = call('HMGET', q.p .. id, unpack(seldom))
    for i = 1, 8 do f[seldom[i]] = v[i] or nil end
    ruled(j, f)
  end
  return j
end

-- loadWhole gives also all of what a message is made of, in the field f.
local function loadWhole(q, id)
  local v, f = call('HGETALL', q.p .. id), {}
  for i = 1, #v, 2 do f[v[i]] = v[i + 1] end
  if not f.name then return nil end
  local j = recordOf(f)
  j.f = f
  return j
end

-- fb:j of a queue has what has not finished, by the time of sending, so that it can be
-- listed, and so that what Node clients took away is missed. What a script does to it is
-- done at its end, all at once. fb:k has the dedup records of those that have one.
local function lists(q, id, j)
  q.listed = q.listed or {}
  q.listed[#q.listed + 1] = j.at
  q.listed[#q.listed + 1] = id
end

local function unlists(q, id)
  q.unlisted = q.unlisted or {}
  q.unlisted[#q.unlisted + 1] = id
end

local function special(j) return (j.g or j.l or j.t) ~= nil end

-- level is our 0 to 9 of BullMQ's priority: none is 5, 1 to 10 are 0 to 9.
local function level(p)
  if p == 0 then return 5 end
  return p > 10 and 9 or p - 1
end

-- rank orders what waits: a level counts as half a minute of age. The last twelve
-- bits keep those of one millisecond in order.
local function rank(j)
  return (j.at + level(j.prio) * 30000) * 4096 + (special(j) and j.seq % 4096 or 4095)
end

-- stateOf tells where a job is, and until when it is delayed.
local function stateOf(q, id, j)
  if j.final then return j.final end
  if q.over and q.over[id] then
    -- its lease is over, though its keys go at the end of the script
  elseif call('ZSCORE', q.f .. 'l', id) or call('EXISTS', q.p .. id .. ':lock') == 1 then return 'active' end
  local due
  if j.place == 'd' then
    due = call('ZSCORE', q.f .. 'd', id)
    if due then return 'delayed', tonumber(due) end
  end
  due = call('ZSCORE', q.delayed, id)
  if due then return 'delayed', math.floor(tonumber(due) / 4096) end
  if call('ZSCORE', q.p .. 'completed', id) then return 'completed' end
  if call('ZSCORE', q.p .. 'failed', id) then return 'dead' end
  return 'waiting'
end
