-- Release: leave the line, waiting or holding; whoever fits then is promoted and told.
--
--   KEYS   the line
--   ARGV   owner, ttl in µs, for how many µs its hold lingers if it does, and the channel of whoever asks, if it has one
--
-- Answers 1 if it was held until now, else 0.
--
-- The first part is for a holder for whom nobody waits: it leaves nothing but the mark.

local owner = ARGV[1]
local text = redis.call('MGET', KEYS[1])[1]
if text and #text == 16 then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

if text and (ARGV[3] or '0') == '0' and string.sub(text, 71, 71 + #owner) == owner .. ' ' then
  redis.call('SET', KEYS[1], string.sub(text, 1, 16), 'KEEPTTL') -- a day from the last renewal, and some
  return now < string.sub(text, 17, 32) + ARGV[2] and 1 or 0
end

-- include line

return release(KEYS[1], owner, (ARGV[3] or 0) + 0, now, ARGV[4])
