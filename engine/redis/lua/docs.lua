-- Document, Documents: one value, or those of a collection after a key, in order. What
-- has expired leaves here.
--
-- ARGV: collection, key, most; 0: that key only
-- Keys: as in putdoc.lua
-- Gives key and value by turns.

local c, k, most = arg(), arg(), num()
local values, names = G .. 'd:' .. c, G .. 'n:' .. c
local out, bytes = {}, 0
local function add(key)
  local v = call('HGET', values, key)
  local ms = v and tonumber(string.match(v, '^%d+|%-?%d+|(%-?%d+)|'))
  if v and ms ~= 0 and ms <= NOW then
    call('HDEL', values, key)
    call('ZREM', names, key)
  elseif v then
    out[#out + 1] = key
    out[#out + 1] = v
    bytes = bytes + #v
  end
end
if most == 0 then
  add(k)
else
  local from = k == '' and '-' or '(' .. k
  while #out < 2 * most and bytes < 8388608 do
    local keys = call('ZRANGEBYLEX', names, from, '+', 'LIMIT', 0, math.min(100, most - #out / 2))
    for _, key in ipairs(keys) do
      if bytes < 8388608 then
        add(key)
        from = '(' .. key
      end
    end
    if #keys == 0 then break end
  end
end
return { out, '0', {}, int(NOW) }
