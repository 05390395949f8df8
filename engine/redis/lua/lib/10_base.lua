-- What every script begins with: the time, the queues that it touches, and the
-- streams that it writes.
--
-- KEYS[1]  any key of the prefix (on a cluster it names the slot of all of them)
-- ARGV[1]  prefix
-- ARGV[2]  now, in ms; 0: the server's own clock
-- ARGV[3]  most events of the history
-- ARGV[4]  minutes that BullMQ's metrics are kept; 0: where Node workers keep them
-- ARGV[5…] what the script itself takes; `arg` gives one after the other
--
-- Keys are built here and not passed: one call may touch many queues, and which
-- keys of a queue is known only while it runs. All have the prefix, so that a hash
-- tag in it holds them in one slot.

local call = redis.call
local PRE = ARGV[1]
local G = PRE .. '::fb:' -- of no queue: BullMQ refuses a queue without a name
local NOW = tonumber(ARGV[2])
if NOW == 0 then
  local t = call('TIME')
  NOW = t[1] * 1000 + math.floor(t[2] / 1000)
end
local NOWS = string.format('%.0f', NOW) -- numbers are slow to pass to a command
local HISTORY, METRICS = tonumber(ARGV[3]), tonumber(ARGV[4])

local cursor = 4
local function arg()
  cursor = cursor + 1
  return ARGV[cursor]
end
local function num()
  cursor = cursor + 1
  return tonumber(ARGV[cursor])
end

-- text of a whole number: tostring would round large ones
local ints = {}
local function int(n)
  local s = ints[n]
  if not s then
    s = string.format('%.0f', n)
    ints[n] = s
  end
  return s
end

-- lives is how long a key is to live that the server drops by its own clock. Where NOW is
-- of another clock, which may stand still meanwhile, it is dropped ten minutes later:
-- nobody but BullMQ goes by its end.
local function lives(ms) return int(math.ceil(math.max(ms, 1)) + (ARGV[2] == '0' and 0 or 600000)) end

-- inParts gives a command many arguments, as many at once as fit on Lua's stack.
local function inParts(command, key, args)
  for from = 1, #args, 2000 do call(command, key, unpack(args, from, math.min(from + 1999, #args))) end
end

-- later puts two more at the end of a list.
local function later(list, a, b)
  list[#list + 1] = a
  list[#list + 1] = b
end

local queues, touched = {}, {}

-- queue gives what is known of a queue. It writes nothing.
local function queue(name)
  local q = queues[name]
  if q then return q end
  local p = PRE .. ':' .. name .. ':'
  local m = call('HMGET', p .. 'meta', 'paused', 'concurrency', 'opts.maxLenEvents', 'max')
  q = {
    name = name, p = p, f = p .. 'fb:', wait = p .. 'wait', active = p .. 'active',
    prio = p .. 'prioritized', delayed = p .. 'delayed', events = p .. 'events',
    paused = m[1] and true or false, most = tonumber(m[2]), keep = m[3], max = m[4],
  }
  queues[name] = q
  touched[#touched + 1] = q
  return q
end

-- event writes to the stream that BullMQ's QueueEvents reads.
local function event(q, what, id, ...)
  if not q.keep then
    q.keep = '10000'
    call('HSET', q.p .. 'meta', 'opts.maxLenEvents', q.keep)
    call('HSETNX', q.p .. 'meta', 'version', 'forebay:1')
    call('SADD', G .. 'q', q.name)
  end
  if q.trimmed then
    call('XADD', q.events, '*', 'event', what, 'jobId', id, ...)
  else -- once a script
    q.trimmed = true
    call('XADD', q.events, 'MAXLEN', '~', q.keep, '*', 'event', what, 'jobId', id, ...)
  end
end

-- note writes to our own history, of jobs only. An entry of it has the events that
-- follow each other in a script, a hundred at most (see historyentry.go): its field m is
-- the time and then groups of events that differ in their job only: what, queue, name,
-- attempt, state, how many strings tell more, those, how many ids, and those, all as
-- strings of MessagePack.
--
--   ::fb:h   the entries. The id of one is the place of its first event, and no other
--            entry gets the places of the others
--   ::fb:hn  how many events there have ever been
--   ::fb:hx  now and then: how many there were, and the entry that made it so many
local H, groups, notes, weight = G .. 'h', {}, 0, 0

local function keepHistory(id)
  local total = call('INCRBY', G .. 'hn', notes)
  local step = math.max(math.floor(HISTORY / 64), 1)
  if math.floor(total / step) == math.floor((total - notes) / step) then return end
  call('RPUSH', G .. 'hx', int(total) .. '|' .. id)
  local last
  while true do
    local n, at = string.match(call('LINDEX', G .. 'hx', 0) or '', '^(%d+)|(.*)$')
    if not n or tonumber(n) > total - HISTORY then break end
    last = at
    call('LPOP', G .. 'hx')
  end
  if last then call('XTRIM', H, 'MINID', last) end
end

local function writeNotes()
  if notes == 0 then return end
  local all = { NOWS }
  for _, g in ipairs(groups) do
    local n = #all
    all[n + 1], all[n + 2], all[n + 3], all[n + 4] = g.what, g.q.name, g.name, int(g.atm + 1)
    all[n + 5], all[n + 6] = g.state, int(#g.more)
    for _, v in ipairs(g.more) do all[#all + 1] = v end
    n = #all + 1
    all[n] = int(#g)
    for i = 1, #g do all[n + i] = g[i] end
  end
  local id = call('XADD', H, '*', 'm', cmsgpack.pack(unpack(all)))
  if notes > 1 then
    local ms, n = string.match(id, '^(%d+)-(%d+)$')
    call('XSETID', H, ms .. '-' .. int(n + notes - 1))
  end
  keepHistory(id)
  groups, notes, weight = {}, 0, 0
end

local nothing = {}

-- note takes beside up to two strings or numbers that tell more, each after its name.
local function note(q, id, j, what, state, kind, value, ...)
  if not j.job then return end
  local name, atm, g = j.name or '', j.atm or 0, groups[#groups]
  if g and not kind and g.more == nothing and g.what == what and g.q == q and g.name == name and g.atm == atm and g.state == state then
    g[#g + 1] = id
  elseif g and g.value and g.value == value and g.what == what and g.q == q and g.name == name and g.atm == atm then
    g[#g + 1] = id -- such as the same result
  else
    g = { id, what = what, q = q, name = name, atm = atm, state = state, more = nothing }
    groups[#groups + 1] = g
    if kind then
      if type(value) == 'number' then value = int(value) end
      g.more = { kind, value, ... }
      if select('#', ...) == 0 then g.value = value end
      for _, v in ipairs(g.more) do weight = weight + #v end
    end
  end
  notes = notes + 1
  if notes == 100 or weight > 65536 then writeNotes() end
end

-- noteRun notes the same of a run of jobs that are alike: some of ids, all of one name.
local function noteRun(q, ids, from, to, j, what, state)
  if not j or not j.job then return end
  local g
  for i = from, to do
    if not g then
      g = { what = what, q = q, name = j.name or '', atm = 0, state = state, more = nothing }
      groups[#groups + 1] = g
    end
    g[#g + 1] = ids[i]
    notes = notes + 1
    if notes == 100 then
      writeNotes()
      g = nil
    end
  end
end

-- stopped tells whether nothing may be handed out now, whatever waits.
local function stopped(q)
  return q.paused or (q.most ~= nil and call('LLEN', q.active) >= q.most)
end

local unload -- in 60_finish.lua
