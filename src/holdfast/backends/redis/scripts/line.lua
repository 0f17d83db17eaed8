-- The line of one name, with the rules of holdfast's reference (`_core/line.py`), for the programs that include it.

-- include forms

-- Its owner holds the lock.
local function holds(place, now)
  return place.token > 0 and now < place.expires and place.evicted == 0
end

-- It takes up its weight.
local function occupies(place, now)
  return place.token > 0 and now < place.expires + place.delay
end

-- A waiter leaves the line.
local function leave(line, place)
  put(line, '#' .. place.rank, false)
  line.waiting = line.waiting - 1
  line.unfair = line.unfair - (place.fair and 0 or 1)
end

-- A hold is there no more; the last slot takes its place.
local function remove_hold(line, place)
  if place.slot < line.slots then
    local last = find(line, get(line, '@' .. line.slots))
    last.slot = place.slot
    touch(line, last)
    put(line, '@' .. place.slot, last.owner)
  end
  put(line, '@' .. line.slots, false)
  line.slots = line.slots - 1
  if place.evicted < 2 then
    line.used = line.used - place.weight
  end
  drop(line, place.owner)
end

-- A hold has another owner from now on, who is nobody: it goes on until it is over by itself. A name of its own, because
-- one owner may leave several.
local function leave_ghost(line, place)
  drop(line, place.owner)
  place.owner = string.format('~%s %.0f', place.owner, place.token)
  put(line, '@' .. place.slot, place.owner)
  touch(line, place)
end

-- Drop the holds that are over, and find out anew what the others take up.
local function sweep(line, now)
  if now < line.quiet then
    return
  end
  local used, quiet, expired = 0, math.huge, {}
  for slot = line.slots, 1, -1 do
    local place = find(line, get(line, '@' .. slot))
    if over_at(place) <= now then
      remove_hold(line, place)
      if place.evicted == 0 then
        expired[#expired + 1] = place
      end
    elseif occupies(place, now) then
      used = used + place.weight
      quiet = math.min(quiet, place.expires + place.delay)
    else
      place.evicted = 2
      touch(line, place)
      quiet = math.min(quiet, over_at(place))
    end
  end
  line.used, line.quiet = used, quiet
  table.sort(expired, function(one, other) return one.token < other.token end)
  for _, place in ipairs(expired) do
    note_end(line, place, 'x')
  end
end

-- The first who waits. Those before it whose time is over are dropped.
local function first_waiter(line, now)
  while line.waiting > 0 do
    local owner = get(line, '#' .. line.first)
    if owner then
      local place = find(line, owner)
      if now < place.expires then
        return place
      end
      leave(line, place)
      drop(line, owner)
    end
    line.first = line.first + 1
  end
end

-- Somebody waits, or takes up its weight.
local function standing(line, now)
  return line.used > 0 or first_waiter(line, now) ~= nil
end

-- Mint a token for a place, and let it stand among the holders.
local function grant(line, place, now)
  line.mark = math.max(line.mark + 1, now)
  line.slots = line.slots + 1
  line.used = line.used + place.weight
  place.token, place.since, place.slot = line.mark, now, line.slots
  put(line, '@' .. line.slots, place.owner)
  touch(line, place)
  line.quiet = math.min(line.quiet, place.expires + place.delay)
end

-- Grant to a waiter, who is told once that is written; but for whoever asks, who is told by the reply.
local function promote_one(line, place, now)
  leave(line, place)
  grant(line, place, now)
  if place.owner ~= line.asker then
    line.pushes = line.pushes or {}
    table.insert(line.pushes, place)
  end
end

-- Grant, in order, whatever fits now: the first that does not fit ends it, but for those who may overtake.
local function promote(line, now)
  local first
  while line.used < line.capacity do
    first = first_waiter(line, now)
    if not first or first.weight > line.capacity - line.used then
      break
    end
    promote_one(line, first, now)
  end
  local rank = line.first
  while first and line.unfair > 0 and line.used < line.capacity and rank < line.ranks do
    rank = rank + 1
    local owner = get(line, '#' .. rank)
    local place = owner and find(line, owner)
    if place and now >= place.expires then
      leave(line, place)
      drop(line, owner)
    elseif place and not place.fair and place.weight <= line.capacity - line.used then
      promote_one(line, place, now)
    end
  end
end

-- Tell an owner of its grant. False if nobody listens on its channel: then there is nobody to hold it. A server that
-- does not let us publish tells us nothing, nor does a cluster, where listeners at other nodes are not counted: a
-- channel there ends in '*'.
local function reached(line, place)
  if place.wake == '-' then
    return true
  end
  local ended = line.ended ~= '' and ' ' .. line.ended or ''
  local heard = redis.pcall('PUBLISH', place.wake, string.format('%s %.0f%s', place.owner, place.token, ended))
  return heard ~= 0 or string.sub(place.wake, -1) == '*'
end

-- Write the line, then tell those who were granted; whoever cannot be told is gone, and the next one's turn has come.
-- The server writes first to whom it had something to say last. So `asker`, the channel of whoever asks, is sent an
-- empty push before: else the next holder would hear of it after the reply, and, in one process, wait for its reader.
local function settle(line, now, asker)
  save(line, now)
  while line.pushes do
    local pushes, lost = line.pushes, false
    line.pushes = nil
    if asker then
      redis.call('PUBLISH', asker, '')
    end
    for _, place in ipairs(pushes) do
      if not reached(line, place) then
        lost = true
        remove_hold(line, place)
      end
    end
    if lost then
      promote(line, now)
      save(line, now)
    end
  end
end

-- Leave the line of a key, waiting or holding; a hold may linger. Whether it was held until now. `untold`: its owner was
-- never told that it holds, so nothing is noted of its end.
local function release(key, text, owner, linger, now, asker, untold)
  local line = load(key, text)
  sweep(line, now)
  local mine = find(line, owner)
  local held = mine ~= nil and holds(mine, now)
  if mine and mine.token > 0 and mine.evicted == 0 and not untold then
    note_end(line, mine, held and 'r' or 'x')
  end
  if held and linger > 0 then
    mine.expires = now + linger
    change_detail(mine, '-', 0)
    line.quiet = math.min(line.quiet, mine.expires)
    leave_ghost(line, mine)
  elseif mine and mine.token > 0 then
    remove_hold(line, mine)
  elseif mine then
    leave(line, mine)
    drop(line, owner)
  end
  promote(line, now)
  settle(line, now, asker)
  return held and 1 or 0
end
