-- The line of one name, with the rules of holdfast's reference (`_core/line.py`), for the programs that include it.
--
-- One key holds everything about a name, so it is always in one slot, and it ends by itself: a day after its last
-- claim, for that is how long the mark (the last token) is kept. Its value is one of
--
--   mark              16 digits: nobody stands there
--   text              a mutex with a holder, and those who wait for it in their order; see below
--   a msgpack array   anything else; see `load`
--
-- Text is what nearly every take, release and hand-off reads and writes, by cutting strings, without unpacking:
--
--   token renewed since quiet count owner ' ' detail            the holder; its token is the mark
--   '\n' owner ' ' until renewed since ' ' detail               for each waiter
--
-- where the first four are 16 digits each and the count of waiters 6, without a space between them. A hold ends at
-- renewed + ttl, a place in the line at `until`; a waiter's `renewed` is what it has as soon as it is promoted. No
-- place ends before `quiet`. `detail` is what a client says of a claim: "wake left capacity weight fair ttl patience
-- delay info". `wake` is the channel that reaches its owner, or '-'; `left` is a day and the ttl in ms; `info` is told
-- to whoever surveys, and means nothing here.
--
-- In msgpack, too, waiters stay one string of packed places (`packed`) as long as nothing ends by itself; then only
-- the first is looked at. Whatever is less simple calls `spread`, which makes them a table (`waiters`).
--
-- Times and tokens are whole µs on the server's own clock: exact in a Lua number until the year 2255, but never to
-- be turned into text without '%.0f'.

local OWNER, TOKEN, EXPIRES, SINCE, EVICTED, WEIGHT, FAIR = 1, 2, 3, 4, 5, 6, 7
local TTL, PATIENCE, DELAY, WAKE, INFO, RANK = 8, 9, 10, 11, 12, 13
local DAY = 86400000
local CLAIM = '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d) (%d+) (%d+) (%d+) ([^\n]*)'
local NEVER = '9999999999999999'

-- A claim as it enters the line, from "owner detail" (which begins at `at`), and the capacity that it asks for.
local function enter(said, now, at)
  local owner, wake, _, capacity, weight, fair, ttl, patience, delay, info = string.match(said, CLAIM, at)
  return {owner, 0, now, now, 0, weight + 0, fair + 0, ttl + 0, patience + 0, delay + 0, wake, info, 0}, capacity + 0
end

-- From when on nothing of it matters.
local function over_at(place)
  if place[TOKEN] == 0 then
    return place[EXPIRES]
  end
  if place[EVICTED] == 1 then
    return place[EXPIRES] + math.max(place[DELAY], place[TTL])
  end
  return place[EXPIRES] + place[DELAY]
end

-- Take a place into account: before `quiet` nothing changes by itself, after `last` nothing is left. What was
-- evicted changes twice, so as long as it is there no time is quiet.
local function notice(line, place)
  local over = over_at(place)
  line.quiet = math.min(line.quiet, place[EVICTED] == 1 and 0 or over)
  line.last = math.max(line.last, over)
end

local function load_text(line, text)
  local holder, capacity = enter(text, 0, 71)
  holder[TOKEN] = string.sub(text, 1, 16) + 0
  holder[EXPIRES] = string.sub(text, 17, 32) + holder[TTL]
  holder[SINCE] = string.sub(text, 33, 48) + 0
  line.mark, line.capacity, line.holders[1], line.waiters = holder[TOKEN], capacity, holder, {}
  notice(line, holder)
  for owner, times, detail in string.gmatch(text, '\n(%S+) (%d+) ([^\n]+)') do
    local place = enter(owner .. ' ' .. detail, 0)
    place[EXPIRES], place[SINCE] = string.sub(times, 1, 16) + 0, string.sub(times, 33) + 0
    line.ranks = line.ranks + 1
    place[RANK] = line.ranks
    table.insert(line.waiters, place)
    notice(line, place)
  end
end

local function load(key)
  local text = redis.call('GET', key)
  local line = {mark = 0, capacity = 0, holders = {}, packed = '', count = 0, unfair = 0, ranks = 0,
    quiet = math.huge, last = 0}
  if not text then
    return line
  end
  if #text == 16 then
    line.mark = text + 0
    return line
  end
  local first = string.byte(text)
  if first >= 48 and first <= 57 then -- a digit
    load_text(line, text)
    return line
  end
  line.mark, line.capacity, line.quiet, line.last, line.unfair, line.ranks, line.count, line.packed, line.holders =
    unpack(cmsgpack.unpack(text))
  return line
end

local function spread(line)
  if not line.waiters then
    local waiters, offset = {}, 0
    for i = 1, line.count do
      offset, waiters[i] = cmsgpack.unpack_one(line.packed, offset)
    end
    line.waiters = waiters
  end
  return line.waiters
end

-- Turn the waiters back into a string, and find out anew when the line changes by itself.
local function fold(line)
  local packed = {}
  line.quiet, line.last, line.unfair, line.count = math.huge, 0, 0, #line.waiters
  for i, place in ipairs(line.waiters) do
    notice(line, place)
    line.unfair = line.unfair + 1 - place[FAIR]
    packed[i] = cmsgpack.pack(place)
  end
  for _, place in ipairs(line.holders) do
    notice(line, place)
  end
  line.packed = table.concat(packed)
  line.waiters = nil
end

-- "detail" of a place.
local function told(place, capacity)
  return string.format('%s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s', place[WAKE], place[TTL] / 1000 + DAY, capacity,
    place[WEIGHT], place[FAIR], place[TTL], place[PATIENCE], place[DELAY], place[INFO])
end

-- The line as text, if it can be that.
local function as_text(line)
  local holder = line.holders[1]
  if line.capacity ~= 1 or line.unfair > 0 or #line.holders ~= 1 or holder[TOKEN] ~= line.mark
    or holder[EVICTED] == 1 then
    return
  end
  local records, quiet = {}, NEVER
  for i, place in ipairs(spread(line)) do
    if place[RANK] < holder[RANK] then
      return
    end
    local ends = string.format('%016.0f', place[EXPIRES])
    if ends < quiet then
      quiet = ends
    end
    records[i] = string.format('\n%s %s%016.0f%016.0f %s', place[OWNER], ends, place[EXPIRES] - place[TTL],
      place[SINCE], told(place, 1))
  end
  return string.format('%016.0f%016.0f%016.0f%s%06.0f%s %s', holder[TOKEN], holder[EXPIRES] - holder[TTL],
    holder[SINCE], quiet, #records, holder[OWNER], told(holder, 1)) .. table.concat(records)
end

local function save(key, line, now)
  local waiting = line.waiters and #line.waiters or line.count
  if #line.holders == 0 and waiting == 0 then
    if line.mark > 0 then
      redis.call('SET', key, string.format('%016.0f', line.mark), 'PX', DAY)
    end
    return
  end
  if line.waiters then
    fold(line)
  end
  local value = as_text(line) or cmsgpack.pack({line.mark, line.capacity, line.quiet, line.last, line.unfair,
    line.ranks, line.count, line.packed, line.holders})
  redis.call('SET', key, value, 'PX', string.format('%.0f', math.max(line.last - now, 0) / 1000 + DAY))
end

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

-- Grant to a waiter, who is told now; whoever can not be told is gone. Answers what is left.
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
