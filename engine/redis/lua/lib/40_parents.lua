-- What the end of a child does to its parent, as BullMQ's flows have it. The policy
-- is in the child's field parent: fpof the parent fails, cpof it goes on at once,
-- idof and rdof it does not need the child; none: it waits until the child succeeds.

-- queueOf gives the queue of a full key <prefix>:<queue>, of our prefix only.
local function queueOf(key)
  local n = #PRE + 1
  if string.sub(key, 1, n) ~= PRE .. ':' then return nil end
  return queue(string.sub(key, n + 1))
end

local function releaseParent(q, id, failure)
  local was = call('ZREM', q.p .. 'waiting-children', id)
  if was == 0 and failure and call('ZREM', q.delayed, id) == 1 then
    was = 1
    call('HSET', q.p .. id, 'delay', 0)
  end
  if failure and not call('ZSCORE', q.p .. 'failed', id) then call('HSET', q.p .. id, 'defa', failure) end
  if was == 0 then return end
  local j = load(q, id)
  if not j then return end
  if j.delay > 0 and not failure then
    postpone(q, id, j, NOW + j.delay)
  else
    enqueue(q, id, j, true, 'waiting-children')
  end
end

-- parentDone tells the parent of a child that has ended.
local function parentDone(childKey, j, ok, value)
  if not j.parentKey or j.parentKey == '' then return end
  local said = j.parent and cjson.decode(j.parent) or {}
  local qkey, id = said.queueKey, said.id
  if not qkey then
    qkey, id = string.match(j.parentKey, '^(.*):([^:]*)$')
  end
  local q = qkey and queueOf(qkey)
  if not q or call('EXISTS', j.parentKey) == 0 then return end
  if not ok and not (said.fpof or said.cpof or said.idof or said.rdof) then return end
  if call('SREM', j.parentKey .. ':dependencies', childKey) == 0 then return end
  if ok then
    call('HSET', j.parentKey .. ':processed', childKey, value)
  elseif said.fpof then
    call('ZADD', j.parentKey .. ':unsuccessful', NOW, childKey)
    releaseParent(q, id, 'child ' .. childKey .. ' failed')
    return
  elseif not said.rdof then
    call('HSET', j.parentKey .. ':failed', childKey, value)
  end
  if said.cpof and not ok or call('SCARD', j.parentKey .. ':dependencies') == 0 then releaseParent(q, id) end
end
