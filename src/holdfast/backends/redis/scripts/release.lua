-- Release: leave the line, waiting or holding; whoever fits then is promoted and told.
--
--   KEYS   the line
--   ARGV   owner, ttl in µs, for how many µs its hold lingers if it does, and the channel of whoever asks, if it has one
--
-- Answers 1 if it was held until now, else 0.
--
-- The first part is for a holder for whom nobody waits: it leaves the mark, and how its hold ended. The second is for the holder of
-- a mutex: the first who waits takes its place, and is told. Both cut and join strings; everything else is done as the
-- reference does it.

local key, owner = KEYS[1], ARGV[1]
local text = redis.call('MGET', key)[1]
if text and string.find(text, '^%D', 17) or text and #text == 16 then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local linger = (ARGV[3] or 0) + 0
local held, lost

-- include left

if text and linger == 0 and string.sub(text, 71, 71 + #owner) == owner .. ' ' then
  local in_time = now < string.sub(text, 17, 32) + ARGV[2]
  leave_alone(key, text, owner, in_time)
  return in_time and 1 or 0
elseif not text and linger == 0 then
  local header, mine, ended = unpack(redis.call('HMGET', key, '=', owner, '!'))
  local mark, kept, waiting, ranks, first =
    string.match(header or '', '^(%d+) %d+ (%d+ %d+) 1 1 (%d+) 0 (%d+) (%d+) 1$')
  if mark and waiting ~= '0' and mine and string.find(mine, '^0 %d+ 1 ', 49) then
    local next_owner = redis.call('HGET', key, '#' .. first)
    local place = next_owner and redis.call('HGET', key, next_owner) or ''
    local ends = string.sub(place, 17, 32)
    local clock = string.format('%016.0f', now)
    if clock < ends and clock < string.sub(mine, 17, 32) then
      if not ended or string.byte(ended, 2) ~= 49 then -- else it stays unrecovered
        ended = 'r0' .. string.sub(mine, 1, 16) .. owner
      end
      local token = string.format('%016.0f', math.max(mark + 1, now))
      local rank, detail = string.match(place, '^0( %d+ )0( .*)', 49)
      redis.call('HSET', key, '=',
        string.format('%s %s %s 1 1 %d 0 %s %.0f 1', token, ends, kept, waiting - 1, ranks, first + 1),
        next_owner, token .. ends .. clock .. '0' .. rank .. '1' .. detail, '@1', next_owner, '!', ended)
      redis.call('HDEL', key, owner, '#' .. first)
      if ARGV[4] then
        redis.call('PUBLISH', ARGV[4], '') -- see `settle`
      end
      local wake = string.match(detail, '^ (%S+)')
      local heard = wake == '-' and 1 or redis.pcall('PUBLISH', wake, next_owner .. ' ' .. token .. ' ' .. ended)
      held = 1
      if heard ~= 0 or string.sub(wake, -1) == '*' then
        return held
      end
      lost = next_owner -- nobody is there: it is as if it had let go at once
    end
  end
end

-- include line

local left = release(key, text, lost or owner, linger, now, ARGV[4], lost)
return held or left
