-- Turns: who waits for a name, and whom a node tells that it is free. Included by the programs, after `marks`.
--
--   waiters  a sorted set for all names: who was seen waiting, and until when (ms of this node's calendar) that counts
--   line     a sorted set for each name: the same members, by place. A place is the mark that the waiter met first: who came
--            during an earlier hold is before who came during a later one, whatever the calendars say.
--   member   since when (16 digits, its own calendar), where it listens (8), the key of the hold, a new line, its claim
--
-- 1. All this is a hint, and decides who asks when; a vote depends on hold and mark alone.
-- 2. A hold that ends with a new line was met by somebody who waits: its release hands the name over. So a release that
--    nobody waits for looks at no line.
-- 3. Handed over, a name is reserved for the first in line who listens: a ballot of zeros, '>', and its owner. Others are
--    refused for a moment, and it is told. A reservation only refuses: to whom it is for, the name is as good as free.
-- 4. Whoever was told, and neither asks in time nor says again that it waits, is passed over: a waiter that died delays
--    others for that moment, once, and one whose connection has ended not at all.

local KEPT_MS, RESERVED_MS = 10000, 200
local RESERVED = NOBODY .. '0000000000>'

local function line_of(marks, key)
  return marks .. '/line/' .. key
end

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function is_met(hold)
  return string.byte(hold, -1) == 10
end

local function is_reserved_for(hold, owner)
  return hold == RESERVED .. owner .. ' '
end

local function leave_line(marks, key, member)
  redis.call('ZREM', line_of(marks, key), member)
  return redis.call('ZREM', marks .. '/waiters', member)
end

-- Wait at this place, or go on to. Answers how many are before it.
local function join_line(marks, key, member, place)
  local line, waiters, now = line_of(marks, key), marks .. '/waiters', now_ms()
  redis.call('ZADD', waiters, string.format('%.0f', now + KEPT_MS), member)
  redis.call('ZREMRANGEBYSCORE', waiters, '-inf', string.format('%.0f', now)) -- whoever has left without a word
  redis.call('PEXPIRE', waiters, 2 * KEPT_MS)
  redis.call('ZADD', line, place, member)
  redis.call('PEXPIRE', line, 2 * KEPT_MS)
  return redis.call('ZRANK', line, member)
end

-- Free a name for the first in line, or for anybody if nobody is; not for `gone`, who may stand there still: it was refused
-- here, and let in by others.
local function hand_over(marks, key, gone)
  local line, waiters, now = line_of(marks, key), marks .. '/waiters', now_ms()
  local first = redis.call('ZRANGE', line, 0, 0)[1]
  while first do
    local kept = redis.call('ZSCORE', waiters, first)
    local owner = string.match(first, '\n%d%d%d%d%d%d%d%d%d%d([^ ]*)')
    if owner ~= gone and kept and tonumber(kept) > now then
      local heard = redis.pcall('PUBLISH', marks .. '/' .. sub(first, 17, 24), owner)
      if type(heard) == 'number' and heard > 0 then
        redis.call('SET', key, RESERVED .. owner .. ' ', 'PX', RESERVED_MS)
        redis.call('ZADD', waiters, string.format('%.0f', now + RESERVED_MS), first)
        return
      end
    end
    leave_line(marks, key, first)
    first = redis.call('ZRANGE', line, 0, 0)[1]
  end
  redis.call('DEL', key)
end
