-- List: the first keys of records in a range of the index. Those that Redis has removed by itself are dropped from it.
--
--   KEYS   the index
--   ARGV   how the keys of records begin, the range as ZRANGE … BYLEX wants it (two words), how many
--
-- Answers {the key up to which it has looked, if there may be more behind it; key…}. It looks at so many keys at most
-- that it lets others in between.

local LOOK_COUNT = 1000
local index, prefix, limit = KEYS[1], ARGV[1], ARGV[4] + 0
local count = math.min(LOOK_COUNT, limit + 100)
local noted = redis.call('ZRANGE', index, ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, count)
local said = {#noted == count and noted[count]}
for _, key in ipairs(noted) do
  if #said > limit then
    said[1] = said[#said]
    break
  end
  if redis.pcall('EXISTS', prefix .. key) == 0 then
    redis.call('ZREM', index, key)
  else
    said[#said + 1] = key
  end
end
return said
