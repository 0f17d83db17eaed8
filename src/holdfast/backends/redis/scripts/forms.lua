-- How the line of one name is kept, and how it is read and written.
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
-- delay info". `wake` is the channel that reaches its owner, or '-'; `left` is a day, the ttl and the delay in ms; `info` is told
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
  return string.format('%s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s', place[WAKE], (place[TTL] + place[DELAY]) / 1000 + DAY, capacity,
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
