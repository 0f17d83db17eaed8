-- Touch: have records of their owners live for another ttl, many in one call. They are kept for as long as they were to
-- be kept, from now on.
--
--   KEYS   the records
--   ARGV   for each record: owner, ttl in µs; and at the end the index. That is no key of this call: while its slot moves
--          to another node, a call with two keys would be refused, and running attempts would die
--
-- Answers for each: 1 it is this owner's, 0 it is not, or not there; 2 nobody can tell.

-- include record
-- include not_written

local replies = {}
local longest = 0

local function touch(key, owner, ttl)
  local found, keep = unpack(redis.call('HMGET', key, 'o', 'k'))
  if found ~= owner then
    return 0
  end
  redis.call('HSET', key, 'a', string.format('%.0f', now + ttl))
  redis.call('PEXPIRE', key, keep)
  longest = math.max(longest, keep + 0)
  return 1
end

for i, key in ipairs(KEYS) do
  local done, said = pcall(touch, key, ARGV[2 * i - 1], ARGV[2 * i] + 0)
  replies[i] = done and said or not_written(said) and 2 or 0
end
if longest > 0 then
  pcall(keep_index, ARGV[#ARGV], longest)
end
return replies
