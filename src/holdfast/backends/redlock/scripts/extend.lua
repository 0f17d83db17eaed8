-- Extend: keep holds for their owners, and take part in those that this node had no part in yet.
--
--   KEYS   this node's memory, then one name for each claim
--   ARGV   for each claim: ballot, owner, ttl in µs, ttl and delay in µs, detail
--
-- Answers 1 if all are held now, 'A' if this node has lost its memory, else 'X' and for each claim
--   1   held: extended, or taken again
--   0   gone
--   e   evicted by hand
--
-- Extended iff this very owner and ballot hold here. Taken again iff the name is free and its mark is below the ballot,
-- or the mark is this very owner's and ballot's own: its hold ran out here, and nobody came after it.

local memory = redis.call('GET', KEYS[1])
if not memory or string.sub(memory, 1, 1) ~= '+' then
  return 'A'
end

-- include record

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = digits(now)
local said, all = {}, true

for i = 2, #KEYS do
  local at = 5 * (i - 2)
  local ballot, owner = ARGV[at + 1], ARGV[at + 2]
  local ends, closed = digits(now + ARGV[at + 3]), digits(now + ARGV[at + 4])
  local record = redis.call('GET', KEYS[i])
  local mark = record and sub(record, 1, 20) or mark_of_old(memory, now)
  local verdict = '1'
  if record and is_owner(record, owner) and sub(record, 21, 40) == ballot
      and (mark == ballot or sub(record, 41, 56) > clock) then
    keep(KEYS[i], mark, ballot, ends, closed, sub(record, 73, 88), sub(record, 89), now)
  elseif mark < ballot and (not record or sub(record, 57, 72) <= clock) then
    keep(KEYS[i], ballot, ballot, ends, closed, clock, owner .. ' ' .. ARGV[at + 5], now)
  else
    verdict = record and sub(record, 89, 90 + #owner) == '!' .. owner .. ' ' and 'e' or '0'
    all = false
  end
  said[i - 1] = verdict
end
return all and 1 or 'X' .. table.concat(said)
