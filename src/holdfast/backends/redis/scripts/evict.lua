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
local found = 0
for _, place in ipairs(line.holders) do
  if place[TOKEN] == ARGV[1] + 0 and holds(place, now) then
    place[EVICTED], place[EXPIRES] = 1, now
    notice(line, place)
    found = 1
  end
end
sweep(line, now)
promote(line, now)
save(KEYS[1], line, now)
return found
