-- What a take does that is not the usual one: one claim at one line, or several, of which all are granted or none.

-- include line

-- Find the claim's place in its line again, or see whether it would be granted. Answers the place, if it has one.
local function come(line, asked, now)
  local mine = find(line, asked.owner)
  line.asker = asked.owner
  if mine and mine.token == 0 and now >= mine.expires then -- its place was not kept
    leave(line, mine)
    drop(line, mine.owner)
    mine = nil
  elseif mine and mine.evicted > 0 then -- its hold is over, but for its delay; who comes again stands at the end
    leave_ghost(line, mine)
    mine = nil
  end
  if mine then
    local waited = mine.token == 0
    if mine.wake ~= asked.wake then -- it may have been out of reach before
      change_detail(mine, asked.wake, mine.delay)
    end
    mine.expires = now + (waited and mine.patience or mine.ttl)
    touch(line, mine)
    promote(line, now)
    if waited and mine.token > 0 then
      mine.expires = now + mine.ttl -- its owner is asking right now: rule 2 of the line
    end
  else
    promote(line, now) -- whoever was let in by the sweep comes first
  end
  return mine
end

-- Whether a new claim is granted at once.
local function fits(line, asked, now)
  return asked.weight <= line.capacity - line.used and (not asked.fair or first_waiter(line, now) == nil)
end

-- Put a new place at the end; it is granted if it fits.
local function join(line, asked, now)
  line.ranks = line.ranks + 1
  asked.rank = line.ranks
  if fits(line, asked, now) then
    asked.expires = now + asked.ttl
    return grant(line, asked, now)
  end
  asked.expires = now + asked.patience
  touch(line, asked)
  put(line, '#' .. asked.rank, asked.owner)
  if line.waiting == 0 then
    line.first = asked.rank
  end
  line.waiting = line.waiting + 1
  line.unfair = line.unfair + (asked.fair and 0 or 1)
end

local FEW = 8 -- so many are looked at one by one, for what is only an advice

-- What a waiter is told: in how long it should look even without a push (the first in line when a hold may have ended),
-- how many stand before it (at most: some may have left), and the mark.
local function queued(line, mine, now)
  local near = math.min(mine.rank - line.first, line.waiting - 1) < FEW
  local first = near and first_waiter(line, now)
  local after, ahead = math.floor(mine.patience / 3), math.min(mine.rank - line.first, line.waiting - 1) + line.slots
  if not near then
    return {after, ahead, line.mark}
  end
  local ends = line.quiet
  if line.slots <= FEW then
    ends = math.huge
    for slot = 1, line.slots do
      local place = find(line, get(line, '@' .. slot))
      if occupies(place, now) then
        ends = math.min(ends, place.expires + place.delay)
      end
      if place.rank > mine.rank or not occupies(place, now) then
        ahead = ahead - 1
      end
    end
  end
  if first == mine then
    after = math.min(after, math.max(1000, ends - now + 500))
  end
  return {after, ahead, line.mark}
end

-- Somebody waits until then, and some time more: the name is noted where such names are, now and then.
local function note(line, mine, index)
  if index and line.noted < mine.expires then
    line.noted = mine.expires + mine.patience
    redis.call('ZADD', index, 'GT', string.format('%.0f', line.noted), line.key)
  end
end

-- A line as a claim finds it: what is over is dropped, and who asks first says how much there is.
local function open(key, text, capacity, now)
  local line = load(key, text)
  sweep(line, now)
  if not standing(line, now) then
    line.capacity = capacity
  end
  return line
end
