-- A program under the fence that writes, carried out once however often the client sends it.
--
--   KEYS   the receipt, then those of fenced.lua
--   ARGV   ms to keep the receipt, the longest reply to keep in bytes, then those of fenced.lua
--
-- redis-py sends a command again when its connection breaks, unseen by us. So each call has a receipt of its own, in
-- which it leaves its reply in the step in which it writes; a copy finds it, and answers the same: also after a newer
-- claim, for it was done before that. Answers as fenced.lua does, or {2} if the reply was too long to be kept.

local receipt, kept, longest = table.remove(KEYS, 1), table.remove(ARGV, 1), table.remove(ARGV, 1)
local known = redis.call('GET', receipt)
if known then
  return cmsgpack.unpack(known)
end

local function fenced()
  --FENCED--
end

local reply = fenced()
if reply[1] == 1 then
  local packed = cmsgpack.pack(reply)
  if #packed > tonumber(longest) then
    packed = cmsgpack.pack({2})
  end
  redis.call('SET', receipt, packed, 'PX', kept)
end
return reply
