-- A take that is not the usual one.

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

-- Somebody waits until then, and some time more: the name is noted where such names are, now and then. Those for which
-- nobody waits any more are forgotten, and all of them when nobody has waited anywhere for a day.
local function note(line, mine, index, left, now)
  if index and line.noted < mine.expires then
    line.noted = mine.expires + mine.patience
    redis.call('ZADD', index, 'GT', string.format('%.0f', line.noted), line.key)
    redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%.0f', now))
    redis.call('PEXPIRE', index, left)
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

-- Enter the lines of all claims in one step. `args`, `index` and what it answers are those of take.lua; `text` is what MGET
-- says of the only key, if that is known.
local function take(keys, text, args, index, now)
  local queue = index ~= '0'
  local lines, claims, places, replies = {}, {}, {}, {}
  local mismatch, all = false, true
  for i, key in ipairs(keys) do
    local asked, capacity = enter(args[2 * i - 1], now)
    local line = open(key, text, capacity, now)
    lines[i], claims[i], replies[i] = line, asked, 0
    if line.capacity ~= capacity then
      replies[i] = -line.capacity
      mismatch = true
    end
  end
  if mismatch then
    return replies
  end
  for i, line in ipairs(lines) do
    local hears = claims[i].wake ~= '?'
    if not hears then
      change_detail(claims[i], '-', claims[i].delay)
    end
    places[i] = come(line, claims[i], now)
    queue = queue and (hears or places[i] ~= nil) -- who stands there already keeps its place
    if places[i] then
      all = all and places[i].token > 0
    else
      all = all and fits(line, claims[i], now)
    end
  end
  for i, line in ipairs(lines) do
    local mine = places[i]
    if all or queue then
      if not mine then
        mine = claims[i]
        join(line, mine, now)
      end
      replies[i] = line.ended ~= '' and string.format('%016.0f%s', mine.token, line.ended) or mine.token
      if mine.token == 0 then
        replies[i] = queued(line, mine, now)
        note(line, mine, index, args[2], now)
      end
    elseif mine and mine.token == 0 then -- all or none
      leave(line, mine)
      drop(line, mine.owner)
    elseif not mine and fits(line, claims[i], now) then
      line.mark = math.max(line.mark + 1, now) -- the reference grants it, and takes it back
    end
    settle(line, now)
  end
  return replies
end
