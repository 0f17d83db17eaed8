-- Take: enter the lines of all claims in one step, or only find out.
--
--   KEYS   one line for each claim
--   ARGV   for each claim: "owner detail" (see forms.lua), a day, its ttl and its delay in ms; at the end '0': do not queue, or the
--          key in which names are noted for which somebody waits, until when, if there is one.
--          A claim with '?' for its channel does not queue either: it has yet to subscribe
--
-- Answers for each claim (for a single one, without the list around it):
--   token                  granted (a number, or its digits; behind its 16 digits stands how the last hold ended, if that
--                          is known: see forms.lua)
--   0                      not granted, and not queued
--   -capacity              the live line has another capacity; nothing was done at all
--   {after, ahead, mark}   queued: look again after so many µs; how many stand before it; the last token so far
--
-- The first part is the uncontended take: three commands, and no arithmetic. The second is for a claim that comes to wait
-- for a mutex, as those before it do: it cuts and joins strings, and says what `queued` would. Everything else is done
-- as the reference does it.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local text

if #KEYS == 1 then
  local clock = time[1] .. string.sub('00000' .. time[2], -6)
  text = redis.call('MGET', KEYS[1])[1]
  if not text or text < clock and (#text == 16 or string.byte(text, 17) > 57) then -- nobody stands there, and the mark (if
    -- any) is in the past
    local holder = clock .. clock .. clock .. '9999999999999999000000' .. ARGV[1]
    if text then
      local ended = string.sub(text, 17)
      redis.call('SET', KEYS[1], ended == '' and holder or holder .. '\n' .. ended, 'PX', ARGV[2])
      return clock .. ended
    elseif redis.call('SET', KEYS[1], holder, 'PX', ARGV[2], 'NX') then -- nor is it a hash
      return clock
    end
  end
  local owner, wake, patience = string.match(ARGV[1], '^(%S+) (%S+) %d+ 1 1 1 %d+ (%d+) ')
  if not text and owner and wake ~= '?' and ARGV[3] ~= '0' then
    local header, mine = unpack(redis.call('HMGET', KEYS[1], '=', owner))
    local mark, quiet, kept, noted, waiting, ranks, first =
      string.match(header or '', '^(%d+) (%d+) (%d+) (%d+) 1 1 (%d+) 0 (%d+) (%d+) 1$')
    local ends = now + patience
    if mark and not mine and now < quiet + 0 and ends + 86400000000 <= kept + 0 and (not ARGV[3] or ends <= noted + 0) then
      local rank = ranks + 1
      local alone = waiting == '0'
      local after, ahead, known = math.floor(patience / 3), math.min(rank - first, waiting + 0), true
      if alone then -- it looks when the hold may have ended
        local place = redis.call('HGET', KEYS[1], redis.call('HGET', KEYS[1], '@1'))
        local delay = string.match(place, '^%d %d+ %d+ %S+ %d+ %d+ %d+ %d %d+ %d+ (%d+)', 49)
        after = math.min(after, math.max(1000, string.sub(place, 17, 32) + delay - now + 500))
        first = rank
        ahead = 0
      elseif ahead < 8 then -- else whoever looks is near enough to see whether the first one is there
        local leader = redis.call('HGET', KEYS[1], '#' .. first)
        local place = leader and redis.call('HGET', KEYS[1], leader)
        known = place and now < string.sub(place, 17, 32) + 0
      end
      if known then
        redis.call('HSET', KEYS[1], '=', string.format('%s %s %s %s 1 1 %d 0 %.0f %.0f 1', mark, quiet, kept, noted, waiting + 1,
          rank, first), '#' .. string.format('%.0f', rank), owner, owner, string.format('%016.0f%016.0f%016.0f0 %.0f 0 %s', 0, ends, now,
          rank, string.sub(ARGV[1], #owner + 2)))
        return {after, ahead + 1, mark + 0}
      end
    end
  end
end

-- include queue

local replies = take(KEYS, text, ARGV, ARGV[2 * #KEYS + 1], now)
return #KEYS == 1 and replies[1] or replies
