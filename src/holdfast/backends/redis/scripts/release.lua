-- Release: leave the line, waiting or holding; whoever fits then is promoted and told.
--
--   KEYS   the line
--   ARGV   owner, ttl in µs, for how many µs its hold lingers ('0': it does not)
--
-- Answers 1 if it was held until now, else 0.
--
-- The first half is the uncontended release: a lone holder that leaves nothing but the mark.

local owner = ARGV[1]
local text = redis.call('GET', KEYS[1])
if not text or #text == 16 then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

if ARGV[3] == '0' and string.sub(text, 49, 49 + #owner) == owner .. ' ' then
  local first = string.byte(text)
  if first >= 48 and first <= 57 then
    redis.call('SET', KEYS[1], string.sub(text, 1, 16), 'PX', '86400000')
    return now < string.sub(text, 17, 32) + ARGV[2] and 1 or 0
  end
end

-- include line

local line = load(KEYS[1])
local linger = ARGV[3] + 0
local mine, here, at = find(line, owner)
local held = false
if mine then
  held = holds(mine, now)
  if held and linger > 0 then
    mine[OWNER], mine[EXPIRES], mine[DELAY], mine[WAKE] = '~' .. owner, now + linger, 0, '-'
    notice(line, mine)
  else
    table.remove(here, at)
  end
end
sweep(line, now)
promote(line, now)
save(KEYS[1], line, now)
return held and 1 or 0
