-- Wiped: records of ids and dedup keys end, where they are of a queue that was
-- obliterated and their job is not there.
--
-- ARGV: queue, number of keys, the keys
-- Keys: those, and the jobs that they name.

local name, prefix = arg(), #G
for _ = 1, num() do
  local key = arg()
  local r = record(key)
  if r and r.queue == name then
    local id = r.id ~= '' and r.id or string.sub(key, prefix + 3)
    if call('EXISTS', PRE .. ':' .. name .. ':' .. id) == 0 then fade(key, id) end
  end
end
return { {}, '0', {}, int(NOW) }
