-- Release: clear what this owner holds here, up to this ballot, never a later one.
--
--   KEYS   the name, this node's memory
--   ARGV   ballot, owner, µs for which the name stays closed
--
-- Answers 1 if it was held until now, 0 if not, 'A' if this node has lost its memory.
--
-- The mark rises to the ballot whether or not anything was held: a take of this owner that is still on its way, and
-- arrives after its own release, is then refused.

local kept = redis.call('MGET', KEYS[1], KEYS[2])
local record, memory = kept[1], kept[2]
if not memory or string.sub(memory, 1, 1) ~= '+' then
  return 'A'
end

-- include record

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = string.format('%.0f', now)
local mark = record and sub(record, 1, 20) or mark_of_old(memory, now)
local risen = mark < ARGV[1] and ARGV[1] or mark

if record and is_owner(record, ARGV[2]) and sub(record, 21, 40) <= ARGV[1] then
  local held = sub(record, 41, 56) > clock
  local closed = held and ARGV[3] ~= '0' and digits(now + ARGV[3]) or NEVER
  keep(KEYS[1], risen, NOBODY, NEVER, closed, sub(record, 73, 88), sub(record, 89), now)
  return held and 1 or 0
end
if risen ~= mark then
  if record then
    keep(KEYS[1], risen, sub(record, 21, 40), sub(record, 41, 56), sub(record, 57, 72), sub(record, 73, 88),
      sub(record, 89), now)
  else
    keep(KEYS[1], risen, NOBODY, NEVER, NEVER, NEVER, '', now)
  end
end
return 0
