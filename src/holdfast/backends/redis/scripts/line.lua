-- The line of one name, with the rules of holdfast's reference (`_core/line.py`), for the programs that include it.

-- include forms

-- It takes up its weight.
local function occupies(place, now)
  return place[TOKEN] > 0 and now < place[EXPIRES] + place[DELAY]
end

-- Its owner holds the lock.
local function holds(place, now)
  return place[TOKEN] > 0 and now < place[EXPIRES] and place[EVICTED] == 0
end

local function drop_over(places, now)
  for i = #places, 1, -1 do
    if over_at(places[i]) <= now then
      table.remove(places, i)
    end
  end
end

-- Drop what is over.
local function sweep(line, now)
  if now >= line.quiet then
    drop_over(line.holders, now)
    drop_over(spread(line), now)
  end
end

-- Somebody waits, or takes up its weight.
local function standing(line, now)
  if line.waiters and #line.waiters > 0 or not line.waiters and line.count > 0 then
    return true
  end
  for _, place in ipairs(line.holders) do
    if occupies(place, now) then
      return true
    end
  end
  return false
end

local function index_of(places, owner)
  for i, place in ipairs(places) do
    if place[OWNER] == owner then
      return i
    end
  end
end

-- The place of an owner, and the table and index where it stands. A string of packed places is searched for the
-- packed owner, because that begins with a byte which is rare there (a digit is not).
local function find(line, owner)
  local places, i = line.holders, index_of(line.holders, owner)
  if not i and (line.waiters or string.find(line.packed, cmsgpack.pack(owner), 1, true)) then
    places = spread(line)
    i = index_of(places, owner)
  end
  if i then
    return places[i], places, i
  end
end

-- What the holders leave.
local function free(line, now)
  local left = line.capacity
  for _, place in ipairs(line.holders) do
    if occupies(place, now) then
      left = left - place[WEIGHT]
    end
  end
  return left
end

-- Mint a token for a place, and let it stand among the holders.
local function grant(line, place, now)
  line.mark = math.max(line.mark + 1, now)
  place[TOKEN], place[SINCE] = line.mark, now
  table.insert(line.holders, place)
end

-- Tell an owner of its grant. False if nobody listens on its channel: then there is nobody to hold it. A server that
-- does not let us publish tells us nothing, nor does a cluster, where listeners at other nodes are not counted: a
-- channel there ends in '*'.
local function reached(place)
  if place[WAKE] == '-' then
    return true
  end
  local heard = redis.pcall('PUBLISH', place[WAKE], string.format('%s %.0f', place[OWNER], place[TOKEN]))
  return heard ~= 0 or string.sub(place[WAKE], -1) == '*'
end

-- Grant to a waiter, who is told now; whoever cannot be told is gone. Answers what is left.
local function promote_one(line, place, left, now)
  grant(line, place, now)
  if reached(place) then
    notice(line, place)
    return left - place[WEIGHT]
  end
  table.remove(line.holders)
  return left
end

-- Grant, in order, whatever fits now.
local function promote(line, now)
  local left = free(line, now)
  if not line.waiters and line.unfair == 0 then -- the first that does not fit ends it
    while line.count > 0 do
      local offset, place = cmsgpack.unpack_one(line.packed, 0)
      if place[WEIGHT] > left then
        return
      end
      line.count = line.count - 1
      line.packed = offset < 0 and '' or string.sub(line.packed, offset + 1)
      left = promote_one(line, place, left, now)
    end
    return
  end
  local staying, blocked = {}, false
  for _, place in ipairs(spread(line)) do
    if place[WEIGHT] <= left and not (blocked and place[FAIR] == 1) then
      left = promote_one(line, place, left, now)
    else
      blocked = true
      table.insert(staying, place)
    end
  end
  line.waiters = staying
end

-- Put a new place at the end. True if it is granted at once: its owner is told by the reply.
local function join(line, mine, now)
  promote(line, now) -- whoever was let in by the sweep comes first
  line.ranks = line.ranks + 1
  mine[RANK] = line.ranks
  local waiting = line.waiters and #line.waiters or line.count
  if mine[WEIGHT] <= free(line, now) and (waiting == 0 or mine[FAIR] == 0) then
    grant(line, mine, now)
    mine[EXPIRES] = now + mine[TTL]
    notice(line, mine)
    return true
  end
  mine[EXPIRES] = now + mine[PATIENCE]
  notice(line, mine)
  if line.waiters then
    table.insert(line.waiters, mine)
  else
    line.packed = line.packed .. cmsgpack.pack(mine)
    line.count = line.count + 1
    line.unfair = line.unfair + 1 - mine[FAIR]
  end
  return false
end
