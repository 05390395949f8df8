-- What the scripts for plain messages (folder plain) have in common with the others: a
-- plain one is ours, waits in the list, and no rule is to be kept for it. To make the
-- functions of all of this library costs a script as much as a few messages, so those
-- begin with the files up to this one only.

-- head reads what fb begins with: whether it is a job, and its retention.
local heads = {} -- most jobs of a script have the same
local function head(fb)
  local h = heads[fb]
  if not h then
    h = { job = string.sub(fb, 1, 1) == 'j', keep = string.match(fb, '^.([^|]*)|') or '' }
    heads[fb] = h
  end
  return h
end

-- nextDue is when time alone will do something to a queue; nil: never.
local function nextDue(q)
  local min
  local function sooner(v)
    if v and (not min or v < min) then min = v end
  end
  for _, set in ipairs({ 'l', 'd', 'x', 'rr' }) do
    local at = tonumber(call('ZRANGE', q.f .. set, 0, 0, 'WITHSCORES')[2])
    sooner(at and math.ceil(at))
  end
  local d = tonumber(call('ZRANGE', q.delayed, 0, 0, 'WITHSCORES')[2])
  if d then sooner(math.floor(d / 4096)) end
  return min, d
end

-- noteDue notes that time, of all queues. It gives when the next delayed one is due.
local function noteDue(q)
  local due, delayed = nextDue(q)
  if due then call('ZADD', G .. 'due', due, q.name) else call('ZREM', G .. 'due', q.name) end
  return delayed
end

-- nextOfAll is when time will do something next; 0: never.
local function nextOfAll()
  local first = call('ZRANGE', G .. 'due', 0, 0, 'WITHSCORES')
  return first[2] and int(tonumber(first[2])) or '0'
end

-- slow is the answer of a script for plain messages that cannot do what it should.
-- lasting: most likely not the next time either.
local function slow(lasting) return { {}, '0', {}, int(NOW), { 'slow', lasting and 1 or 0 } } end
