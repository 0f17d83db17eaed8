-- What a node keeps of a name, and how it is read. Included by the programs, after their own short way.
--
--   hold    a string: ballot (20 digits), delay in ms (10), owner, a space, and the detail of the claim. It ends by its own
--           expiry: the ttl, and then the lock's delay, during which nobody holds and nobody is let in. A ballot of zeros:
--           closed, and nobody's. A new line at its end: somebody waits for it (see turns.lua).
--   marks   one sorted set for all names: the highest ballot that was ever accepted here, or that a release named
--   trace   a string, ballot and owner: whose hold may be given back here if it runs out and nobody has come since. Only
--           extensions leave one.
--   memory  whether this node remembers (see hello.lua)
--
-- 1. A mark outlives its hold: it is dropped once this node's calendar has passed it by a day, by one in ten of the ballots
--    that raise a mark (those that end with a zero). So what is no longer known is more than a day old, and a name without a
--    mark has that of a day ago (or the floor with which this node was seeded, if that is higher).
-- 2. Ballots are below 2^53: a score keeps them exactly. They are formatted with %.0f only.

local sub = string.sub
local NOBODY = '00000000000000000000'
local DAY = 86400000000

local function day_ago()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2] - DAY
end

local function mark_of(marks, key, memory)
  local score = redis.call('ZSCORE', marks, key)
  return score and tonumber(score) or math.max(day_ago(), tonumber(sub(memory, 2, 21)))
end

local function raise(marks, key, ballot)
  if redis.call('ZADD', marks, 'GT', 'CH', ballot, key) == 1 and string.byte(ballot, 20) == 48 then
    redis.call('ZREMRANGEBYSCORE', marks, '-inf', string.format('(%.0f', day_ago()))
  end
end

local function is_held_by(hold, owner)
  return hold and sub(hold, 1, 20) ~= NOBODY and sub(hold, 31, 31 + #owner) == owner .. ' '
end

-- Whether it is still its owner's, and not just closed for the lock's delay.
local function is_live(key, hold)
  local delay = sub(hold, 21, 30)
  return delay == '0000000000' or redis.call('PTTL', key) > tonumber(delay)
end

local function owner_of(text)
  return string.match(sub(text, 31), '^[^ ]*')
end
