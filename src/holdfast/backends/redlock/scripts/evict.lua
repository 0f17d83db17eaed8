-- Evict: end the hold with this token, by hand, and refuse it from now on.
--
--   KEYS   the name, this node's memory
--   ARGV   token (20 digits)
--
-- Answers 1 if it was held here, 0 if not, 'A' if this node has lost its memory. The mark rises to the token, so that
-- the holder is not taken in again here.

local kept = redis.call('MGET', KEYS[1], KEYS[2])
local record, memory = kept[1], kept[2]
if not memory or string.sub(memory, 1, 1) ~= '+' then
  return 'A'
end

-- include record

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local mark = record and sub(record, 1, 20) or mark_of_old(memory, now)
local risen = mark < ARGV[1] and ARGV[1] or mark

if record and sub(record, 21, 40) == ARGV[1] then
  local held = sub(record, 41, 56) > digits(now)
  keep(KEYS[1], risen, NOBODY, NEVER, NEVER, sub(record, 73, 88), '!' .. sub(record, 89), now)
  return held and 1 or 0
end
if risen ~= mark and record then
  keep(KEYS[1], risen, sub(record, 21, 40), sub(record, 41, 56), sub(record, 57, 72), sub(record, 73, 88),
    sub(record, 89), now)
elseif risen ~= mark then
  keep(KEYS[1], risen, NOBODY, NEVER, NEVER, NEVER, '', now)
end
return 0
