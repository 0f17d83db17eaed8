-- What a node keeps of a name: one string, of fields with fixed widths, so that numbers compare as text.
--
--    1-20  mark      the highest ballot that was ever accepted here, or that a release named
--   21-40  ballot    of the hold; zeros where nobody is holder
--   41-56  until     the hold is live until then, in µs of this node's clock
--   57-72  closed    nobody else is let in before then: `until` and the lock's delay, or a lingering release
--   73-88  since     when it was granted
--   89-    owner, a space, and the detail of the claim. '!' before the owner: it was evicted
--
-- 1. Between two holders `ballot` is zeros or `until` is over; a hold that merely ran out keeps ballot and owner, so that
--    its owner can have it back as long as nobody came after it (mark == ballot).
-- 2. A mark is kept for a day after this node's calendar has passed it. So what is no longer known is a day old, and a
--    name without a record has the mark of a day ago (or the floor with which this node was seeded, if that is higher).
-- 3. Numbers with more than 14 digits are formatted with %.0f only.

local sub = string.sub
local NOBODY = '00000000000000000000'
local NEVER = '0000000000000000'
local DAY = 86400000000

local function digits(number)
  return sub(NEVER .. string.format('%.0f', number), -16)
end

-- The mark of a name without a record (rule 2).
local function mark_of_old(memory, now)
  local floor, old = sub(memory, 2, 21), '0000' .. digits(now - DAY)
  return floor > old and floor or old
end

local function is_owner(record, owner)
  return sub(record, 21, 40) ~= NOBODY and sub(record, 89, 89 + #owner) == owner .. ' '
end

local function keep(key, mark, ballot, ends, closed, since, rest, now)
  local ahead = mark > '0000' .. digits(now) and tonumber(mark) - now or 0
  redis.call('SET', key, mark .. ballot .. ends .. closed .. since .. rest,
    'PX', string.format('%.0f', (DAY + ahead) / 1000))
end
