-- DeadPut: dead letters are counted by their cause. One that has been counted, or is gone
-- meanwhile, is left out, so that two processes may do the same.
--
-- ARGV: the number up to which there are none left, most groups, number of dead letters,
-- then each: its number, group, group where there are too many, text, queue, kind, code,
-- when it died
-- Keys: those of undead (lib/55_leave.lua), the number up to which they are grouped.

local til, most = arg(), num()
for _ = 1, num() do
  local seq, g, rest, text, name, kind, code, died = arg(), arg(), arg(), arg(), arg(), arg(), arg(), arg()
  if call('ZCOUNT', G .. 'dead', seq, seq) == 1 and call('HEXISTS', G .. 'di', seq) == 0 then
    if call('EXISTS', G .. 'dg:' .. g) == 0 and call('ZCARD', G .. 'dn') >= most then g, text = rest, '' end
    call('HSET', G .. 'di', seq, g)
    call('ZADD', G .. 'dm:' .. g, seq, seq)
    call('ZADD', G .. 'dn', 'GT', seq, g)
    call('ZADD', G .. 'dc', call('ZCARD', G .. 'dm:' .. g), g)
    local key = G .. 'dg:' .. g
    if call('HSETNX', key, 'queue', name) == 1 then call('HSET', key, 'kind', kind, 'code', code, 'text', text, 'first', died) end
    call('HSET', key, 'last', died)
  end
end
if tonumber(til) > tonumber(call('GET', G .. 'dx') or '0') then call('SET', G .. 'dx', til) end
return { {}, done(), counts(), int(NOW) }
