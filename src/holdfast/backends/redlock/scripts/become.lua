-- Become: change this node's memory, and marks with it, if it is still what it was seen to be.
--
--   KEYS   this node's memory, then names
--   ARGV   the memory as it was seen, the new one, then a record for each name
--
-- Answers 1 if it was done, else 0: it restarted, or somebody else was quicker.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end

-- include record

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
for i = 2, #KEYS do
  local record = ARGV[i + 1]
  keep(KEYS[i], sub(record, 1, 20), sub(record, 21, 40), sub(record, 41, 56), sub(record, 57, 72), sub(record, 73, 88),
    sub(record, 89), now)
end
redis.call('SET', KEYS[1], ARGV[2])
return 1
