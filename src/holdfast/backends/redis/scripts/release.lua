-- Release: leave the line, waiting or holding; whoever fits then is promoted and told.
--
--   KEYS   the line
--   ARGV   owner, ttl in µs, for how many µs its hold lingers if it does, and the channel of whoever asks, if it has one
--
-- Answers 1 if it was held until now, else 0.
--
-- The first part is for the holder of a mutex: alone, it leaves nothing but the mark; else the first waiter takes its
-- place, and is told. Both cut and join strings; everything else is done as the reference does it.
--
-- The server writes first to whom it had something to say last. So whoever asks is sent an empty push before the next
-- holder is told: else the next would hear of it after the reply to this call, and, in one process, wait for its reader.

local owner = ARGV[1]
local text = redis.call('GET', KEYS[1])
if not text or #text == 16 then
  return 0
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

if (ARGV[3] or '0') == '0' and string.sub(text, 71, 71 + #owner) == owner .. ' ' and string.find(text, '^%d') then
  local held = now < string.sub(text, 17, 32) + ARGV[2] and 1 or 0
  local count = string.sub(text, 65, 70)
  if count == '000000' then
    redis.call('SET', KEYS[1], string.sub(text, 1, 16), 'KEEPTTL') -- a day from the last renewal, and some
    return held
  end

  local clock = string.format('%016.0f', now)
  local quiet = string.sub(text, 49, 64)
  if clock < quiet then
    local start = string.find(text, '\n', 71, true)
    local next_owner, times, wake, left = string.match(text, '^(%S+) (%d+) (%S+) (%d+)', start + 1)
    local token = string.sub(text, 1, 16)
    token = token < clock and clock or string.format('%016.0f', token + 1)
    if ARGV[4] then
      redis.call('PUBLISH', ARGV[4], '')
    end
    local told = wake == '-' and 1 or redis.pcall('PUBLISH', wake, next_owner .. ' ' .. token)
    if told ~= 0 or string.sub(wake, -1) == '*' then
      redis.call('SET', KEYS[1],
        token .. string.sub(times, 17, 32) .. clock .. quiet .. string.format('%06d', count - 1) .. next_owner
          .. string.sub(text, start + #next_owner + 50),
        'PX', left)
      return held
    end
  end
end

-- include line

local line = load(KEYS[1])
local linger = (ARGV[3] or 0) + 0
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
