-- Take: enter the lines of all claims in one step, or only find out.
--
--   KEYS   one line for each claim
--   ARGV   for each claim: "owner detail" (see forms.lua), a day, its ttl and its delay in ms; at the end '0': do not queue, or the
--          key in which names are noted for which somebody waits, until when, if there is one.
--          A claim with '?' for its channel does not queue either: it has yet to subscribe
--
-- Answers for each claim (for a single one, without the list around it):
--   token                  granted (a number, or its digits)
--   0                      not granted, and not queued
--   -capacity              the live line has another capacity; nothing was done at all
--   {after, ahead, mark}   queued: look again after so many µs; how many stand before it; the last token so far
--
-- The first part is the uncontended take: three commands, and no arithmetic.

local time = redis.call('TIME')
local text

if #KEYS == 1 then
  local clock = time[1] .. string.sub('00000' .. time[2], -6)
  text = redis.call('MGET', KEYS[1])[1]
  if not text or (#text == 16 and text < clock) then -- nobody stands there, and the mark (if any) is in the past
    local holder = clock .. clock .. clock .. '9999999999999999000000' .. ARGV[1]
    if text then
      redis.call('SET', KEYS[1], holder, 'PX', ARGV[2])
      return clock
    elseif redis.call('SET', KEYS[1], holder, 'PX', ARGV[2], 'NX') then -- nor is it a hash
      return clock
    end
  end
end

-- include queue

local replies = take(KEYS, text, ARGV, ARGV[2 * #KEYS + 1], time[1] * 1000000 + time[2])
return #KEYS == 1 and replies[1] or replies
