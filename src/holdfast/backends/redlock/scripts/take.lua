-- Take: vote for a ballot, and hold for its owner.
--
--   KEYS   the name, this node's memory
--   ARGV   ballot (20 digits), owner, ttl in µs, ttl and delay in µs, detail
--
-- Answers:
--   1                  yes
--   'H' mark µs        no: somebody holds it, for so long
--   'M' mark           no: free, but a ballot must go above this mark
--   'A'                no vote: this node has lost its memory
--
-- Yes iff the name is free or the owner's own, and its mark is below the ballot. The very same take again, the same yes
-- again. What is written stands in one step: owner, time and mark.
--
-- The first half is the uncontended take: three commands and little arithmetic.

local sub = string.sub
local kept = redis.call('MGET', KEYS[1], KEYS[2])
local record, memory = kept[1], kept[2]
if not memory or sub(memory, 1, 1) ~= '+' then
  return 'A'
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = string.format('%.0f', now)
if record and sub(record, 57, 72) <= clock and sub(record, 1, 20) < ARGV[1] and ARGV[1] <= '0000' .. clock then
  redis.call('SET', KEYS[1], ARGV[1] .. ARGV[1] .. string.format('%.0f%.0f', now + ARGV[3], now + ARGV[4])
    .. clock .. ARGV[2] .. ' ' .. ARGV[5], 'PX', '86400000')
  return 1
end

-- include record

local mark = record and sub(record, 1, 20) or mark_of_old(memory, now)
if record and sub(record, 57, 72) > clock then
  if not is_owner(record, ARGV[2]) then
    return 'H' .. mark .. string.format('%.0f', tonumber(sub(record, 57, 72)) - now)
  end
  if sub(record, 21, 40) == ARGV[1] and sub(record, 41, 56) > clock then
    return 1
  end
end
if mark >= ARGV[1] then
  return 'M' .. mark
end
keep(KEYS[1], ARGV[1], ARGV[1], digits(now + ARGV[3]), digits(now + ARGV[4]), clock, ARGV[2] .. ' ' .. ARGV[5], now)
return 1
