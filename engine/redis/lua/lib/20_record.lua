-- The record of a job: BullMQ's hash, with fields of ours beside.
--
--   fb   all of the message that BullMQ has no field for, JSON; absent: a Node job
--   fbj  1: it is a job, with a ledger; absent with fb: nobody tracks it
--   fbb  how data holds the payload: absent as it is, b base64, e it is empty
--   fbg  chain: one after the other      fbl  limit key      fbt  tenant
--   fbs  number in the order of sending, of those with one of the three
--   fbp  where one of those waits: w in its lane, p parked behind its chain, d delayed
--   fbd  hand-outs, released ones not    fbz  final state    fbq  number as dead letter
--   fbw  until when its id is remembered fbk  its dedup record
--   fbe  expires    fbv  deadline        fbc  asked to stop: "!" and the reason
--   fbn  retention: age, count, none, age of dead, count of dead
--   fbu  why it ended    fbf0…fbf9  why its last attempts failed

local function load(q, id)
  local v = call('HMGET', q.p .. id, 'name', 'fb', 'fbj', 'fbg', 'fbl', 'fbt', 'fbs', 'fbp', 'fbd', 'fbz',
    'fbq', 'fbw', 'fbk', 'fbe', 'fbv', 'fbc', 'fbn', 'priority', 'timestamp', 'atm', 'ats', 'processedOn',
    'deid', 'parentKey', 'parent', 'defa', 'delay')
  if not v[1] then return nil end
  return {
    name = v[1], ours = v[2] and true or false, job = not v[2] or v[3] == '1',
    g = v[4] or nil, l = v[5] or nil, t = v[6] or nil, seq = tonumber(v[7] or 0), place = v[8] or nil,
    d = tonumber(v[9] or 0), final = v[10] or nil, dead = v[11] or nil, window = tonumber(v[12] or 0),
    key = v[13] or nil, expires = tonumber(v[14] or 0), deadline = tonumber(v[15] or 0), stop = v[16] or nil,
    keep = v[17] or nil, prio = tonumber(v[18] or 0) or 0, at = tonumber(v[19] or 0) or 0, atm = tonumber(v[20] or 0),
    ats = tonumber(v[21] or 0), begun = v[22] or nil, deid = v[23] or nil, parentKey = v[24] or nil,
    parent = v[25] or nil, defa = v[26] or nil, delay = tonumber(v[27] or 0) or 0,
  }
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
  if call('ZSCORE', q.f .. 'l', id) or call('EXISTS', q.p .. id .. ':lock') == 1 then return 'active' end
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
