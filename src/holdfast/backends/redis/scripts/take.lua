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
-- The first part is the uncontended take: three commands, and no arithmetic. The second is the end of the line for a
-- mutex that somebody holds. Both cut and join strings; everything else is done as the reference does it.

local time = redis.call('TIME')
local index = ARGV[2 * #KEYS + 1]

-- Forget the names for which nobody waits any more, and all of them when nobody has waited anywhere for a day.
local function tidy_up(key, clock, left)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', clock)
  redis.call('PEXPIRE', key, left)
end

if #KEYS == 1 then
  local clock = time[1] .. string.sub('00000' .. time[2], -6)
  local text = redis.call('GET', KEYS[1])
  if not text or (#text == 16 and text < clock) then -- nobody stands there, and the mark (if any) is in the past
    redis.call('SET', KEYS[1], clock .. clock .. clock .. '9999999999999999000000' .. ARGV[1], 'PX', ARGV[2])
    return clock
  end

  -- Whose claim is a fair one for a mutex, like all in this line; the line is quiet, and the holder not over.
  local owner, wake, ttl, patience = string.match(ARGV[1], '^(%S+) (%S+) %d+ 1 1 1 (%d+) (%d+) ')
  local held, left, holder_ttl, delay = string.match(text, '^(%d+)%S+ %S+ (%d+) 1 1 %d (%d+) %d+ (%d+) ')
  if owner and held and wake ~= '?' and index ~= '0' then
    local now = time[1] * 1000000 + time[2]
    local over = string.sub(text, 17, 32) + holder_ttl + delay
    local quiet = string.sub(text, 49, 64)
    if now < over and clock < quiet and string.sub(text, 71, 71 + #owner) ~= owner .. ' '
      and not string.find(text, '\n' .. owner .. ' ', 71, true) then
      local before = string.sub(text, 65, 70) + 0
      local ends = string.format('%016.0f', now + patience)
      redis.call('SET', KEYS[1],
        string.sub(text, 1, 48) .. (ends < quiet and ends or quiet) .. string.format('%06d', before + 1)
          .. string.sub(text, 71) .. '\n' .. owner .. ' ' .. ends .. string.format('%016.0f', now + patience - ttl)
          .. clock .. string.sub(ARGV[1], #owner + 1),
        'PX', left + 0 < ARGV[2] + 0 and ARGV[2] or left)
      if index then
        redis.call('ZADD', index, 'GT', ends, KEYS[1])
      end
      local after = math.floor(patience / 3)
      if before == 0 then
        if index then
          tidy_up(index, clock, ARGV[2])
        end
        after = math.min(after, math.max(1000, over - now + 500))
      end
      return {after, before + 1, string.sub(text, 1, 16) + 0}
    end
  end
end

-- include line

-- In how long a waiter should look even without a push: the first in line when a hold may have ended.
local function look_again(line, mine, first, now)
  local soonest = math.floor(mine[PATIENCE] / 3)
  if first then
    for _, place in ipairs(line.holders) do
      if occupies(place, now) then
        soonest = math.min(soonest, math.max(1000, place[EXPIRES] + place[DELAY] - now + 500))
      end
    end
  end
  return soonest
end

-- What a waiter is told.
local function queued(line, mine, now)
  local before = line.waiters and index_of(line.waiters, mine[OWNER]) or line.count
  local ahead = before - 1
  for _, place in ipairs(line.holders) do
    if place[RANK] < mine[RANK] and occupies(place, now) then
      ahead = ahead + 1
    end
  end
  return {look_again(line, mine, before == 1, now), ahead, line.mark}
end

local now = time[1] * 1000000 + time[2]
local queue = index ~= '0'
local lines, places, known, replies = {}, {}, {}, {}
local mismatch, all, tidy = false, true, false

for i, key in ipairs(KEYS) do
  local line = load(key)
  local place, capacity = enter(ARGV[2 * i - 1], now)
  lines[i], places[i], replies[i] = line, place, 0
  sweep(line, now)
  if not standing(line, now) then
    line.capacity = capacity
  elseif line.capacity ~= capacity then
    replies[i] = -line.capacity
    mismatch = true
  end
end

if not mismatch then
  for i, line in ipairs(lines) do
    local mine = find(line, places[i][OWNER])
    known[i] = mine
    if places[i][WAKE] == '?' then
      queue = queue and mine -- who stands there already keeps its place
      places[i][WAKE] = '-'
    end
    if mine and mine[EVICTED] == 1 then -- its hold is over, but for its delay; who comes again stands at the end
      mine[OWNER] = '~' .. mine[OWNER]
      mine = nil
    end
    if not mine then
      mine = places[i]
      join(line, mine, now)
    else
      mine[WAKE] = places[i][WAKE] -- it may have been out of reach before
      local waited = mine[TOKEN] == 0
      mine[EXPIRES] = now + (waited and mine[PATIENCE] or mine[TTL])
      local wake = mine[WAKE]
      mine[WAKE] = '-' -- it is told by the reply
      promote(line, now)
      mine[WAKE] = wake
      if waited and mine[TOKEN] > 0 then
        mine[EXPIRES] = now + mine[TTL] -- its owner is asking right now: rule 2 of the line
      end
      notice(line, mine)
      places[i] = mine
    end
    all = all and mine[TOKEN] > 0
  end
  for i, line in ipairs(lines) do
    local mine = places[i]
    if not (all or queue) then -- all or none: leave every line again that was entered now
      if not (known[i] and mine[TOKEN] > 0) then
        local _, here, at = find(line, mine[OWNER])
        table.remove(here, at)
        if mine[TOKEN] > 0 then
          promote(line, now)
        end
      end
    elseif mine[TOKEN] > 0 then
      replies[i] = mine[TOKEN]
    else
      replies[i] = queued(line, mine, now)
      if index then
        redis.call('ZADD', index, 'GT', string.format('%.0f', mine[EXPIRES]), KEYS[i])
        tidy = true
      end
    end
    save(KEYS[i], line, now)
  end
end

if tidy then
  tidy_up(index, string.format('%.0f', now), ARGV[2])
end
return #KEYS == 1 and replies[1] or replies
