-- Evict: end the hold with this token, by hand; its owner learns why at its next renewal.
--
--   KEYS   the line
--   ARGV   token
--
-- Answers 1 if there was such a hold, else 0.

-- include line

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local line = load(KEYS[1])
sweep(line, now)
local found = 0
for slot = 1, line.slots do
  local place = find(line, get(line, '@' .. slot))
  if place.token == ARGV[1] + 0 and holds(place, now) then
    place.evicted, place.expires = 1, now
    line.quiet = now
    note_end(line, place, 'e')
    touch(line, place)
    found = 1
  end
end
sweep(line, now)
promote(line, now)
settle(line, now)
return found
