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

-- What has finished is in BullMQ's completed and failed by when it ended, and the newer of
-- two always has the higher score: of one ms they differ by thousandths of it. So nothing
-- of ours is written for what completes:
--
--   fb:e  cancelled and expired ones, with their scores in failed
--   fb:s  field last: the highest score until now. Field ages: for how long completed ones
--         are kept, and up to which score in completed those of that age have left, as
--         age:score, one after the other. A few ages only: what has another is in fb:x

-- newer gives the score after another.
local function newer(last) return last < NOW and NOW or last + 0.001 end
local function scoreText(score) return string.format('%.3f', score) end

local function agesOf(q)
  if not q.ages then
    local v = call('HMGET', q.f .. 's', 'last', 'ages')
    q.last, q.ages, q.agesCount = tonumber(v[1] or 0), {}, 0
    for old, from in string.gmatch(v[2] or '', '(%d+):([%d.]+)') do
      q.ages[tonumber(old)], q.agesCount = tonumber(from), q.agesCount + 1
    end
  end
  return q.ages
end

-- leave notes up to where those of an age have left.
local function leave(q, age, from)
  q.ages[age] = from
  local all = {}
  for old, score in pairs(q.ages) do all[#all + 1] = int(old) .. ':' .. scoreText(score) end
  call('HSET', q.f .. 's', 'ages', table.concat(all, ' '))
end

-- leaves tells whether one that completes will leave at its age without an entry of fb:x.
local function leaves(q, age, score)
  local from = agesOf(q)[age]
  if not from and q.agesCount < 4 then
    from = NOW - 1
    q.agesCount = q.agesCount + 1
    leave(q, age, from)
  end
  return from ~= nil and score > from
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
  for age, from in pairs(agesOf(q)) do
    local first = call('ZRANGEBYSCORE', q.p .. 'completed', '(' .. scoreText(from), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    if first then sooner(math.floor(tonumber(first)) + age) end
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
