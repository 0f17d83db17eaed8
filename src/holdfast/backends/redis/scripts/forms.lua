-- How the line of one name is kept, and how it is read and written.
--
-- One key holds everything about a name, so it is always in one slot, and it ends by itself: a day after its last
-- claim, for that is how long the mark (the last token) is kept. Its value is one of
--
--   a string: mark ended               16 digits, and how the last hold ended, if that is known: nobody stands there
--   a string: holder                   one holder, for which nobody waits; see below
--   a hash                             anything else
--
-- The strings are what nearly every take and release reads and writes, by cutting, without a look at anything else:
--
--   token renewed since NEVER '000000' owner ' ' detail         the first four are 16 digits each, without a space
--   and, if it is known, a line feed and `ended`, of the hold before this one
--
-- `ended` is how (r: released, x: expired, e: evicted), 1 or 0 (1: it left something to put right), the token in 16 digits,
-- and the owner (rule 6 of `_core/line.py`). The 17th character of a mark that has it is a letter, of a holder a digit.
-- The hold ends at renewed + ttl, and its token is the mark. (MGET tells nothing about a hash, without an error.)
-- `detail` is what a client says of a claim: "wake left capacity weight fair ttl patience delay info". `wake` is the
-- channel that reaches its owner, or '-'; `left` is a day, the ttl and the delay in ms; `info` is told to whoever
-- surveys, and means nothing here. `fair` is 0 or 1, and 2 more for a claim that is robust. The hash has fields
--
--   =        "mark quiet kept noted capacity used waiting unfair ranks first slots"
--   owner    token expires since evicted ' ' rank ' ' slot ' ' detail: a place (three of 16 digits, and one)
--   #rank    an owner that waits: ranks are given in the order in which claims come
--   @slot    an owner that holds: slots have no gaps
--   !        ended
--
-- so that whatever is done reads and writes a few fields, however many stand there. `used` is the weight of all holds;
-- nothing about a hold changes by itself before `quiet`; no rank before `first` waits; `waiting` and `unfair` count
-- those who wait, also those whose time is over, until one of the programs comes upon them; until `kept` the key
-- stands, whatever its fields say; until `noted` its name is among those for which somebody waits. `evicted` is 0, 1, or 2 for a hold that counts no more.
--
-- Times and tokens are whole µs on the server's own clock: exact in a Lua number until the year 2255, but never to
-- be turned into text without '%.0f'.

local DAY = 86400000000
local YEAR = 366 * DAY -- for what is to be put right
local HOUR = 3600000000
local NEVER = '9999999999999999'
local MOST_WORDS = 4000 -- of one command: Lua can hand over twice as many
local DETAIL = '^(%S+) %d+ (%d+) (%d+) (%d) (%d+) (%d+) (%d+)'
local PLACE = '^(%d) (%d+) (%d+) (.*)'
local HEADER = '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$'

-- What "detail" says of a place; and the capacity that it asks for.
local function read_detail(place, detail)
  local wake, capacity, weight, fair, ttl, patience, delay = string.match(detail, DETAIL)
  place.detail, place.wake, place.fair, place.robust = detail, wake, fair == '1' or fair == '3', fair > '1'
  place.weight, place.ttl, place.patience, place.delay = weight + 0, ttl + 0, patience + 0, delay + 0
  return place, capacity + 0
end

-- A claim as it enters the line, from "owner detail", and the capacity that it asks for.
local function enter(said, now)
  local owner = string.match(said, '^%S+')
  return read_detail({owner = owner, token = 0, expires = now, since = now, evicted = 0, rank = 0, slot = 0},
    string.sub(said, #owner + 2))
end

-- A place says something else of where it is reached, and how long its delay is.
local function change_detail(place, wake, delay)
  local between, info = string.match(place.detail, '^%S+( %d+ %d+ %d+ %d %d+ %d+ )%d+(.*)')
  place.wake, place.delay = wake, delay
  place.detail = wake .. between .. string.format('%.0f', delay) .. info
end

-- A field, as it is now: what is about to be written, or what stands in the hash.
local function get(line, field)
  local value = line.fields[field]
  if value == nil then
    value = line.hash and redis.call('HGET', line.key, field)
    line.fields[field] = value
  end
  return value
end

local function put(line, field, value)
  line.fields[field], line.changed[field] = value, true
end

-- The place of an owner, if it has one.
local function find(line, owner)
  local place = line.places[owner]
  local text = place == nil and get(line, owner)
  if text then
    local evicted, rank, slot, detail = string.match(text, PLACE, 49)
    place = read_detail({owner = owner, token = string.sub(text, 1, 16) + 0, expires = string.sub(text, 17, 32) + 0,
      since = string.sub(text, 33, 48) + 0, evicted = evicted + 0, rank = rank + 0, slot = slot + 0}, detail)
    line.places[owner] = place
  end
  return place or nil
end

-- From when on nothing of a place matters.
local function over_at(place)
  if place.token == 0 then
    return place.expires
  end
  return place.expires + (place.evicted > 0 and math.max(place.delay, place.ttl) or place.delay)
end

-- Somebody did not end cleanly, and what it left is to be put right.
local function unrecovered(line)
  return string.byte(line.ended, 2) == 49
end

-- Note how a hold has ended. One that lingers ('~') has ended before.
local function note_end(line, place, how)
  local left = unrecovered(line)
  if string.byte(place.owner) == 126 or how == 'r' and left then
    return
  end
  local robust = how ~= 'r' and (place.robust or left)
  line.ended = string.format('%s%d%016.0f%s', how, robust and 1 or 0, place.token, place.owner)
  put(line, '!', line.ended)
end

-- A place has changed: it is to be written.
local function touch(line, place)
  line.robust = line.robust or place.robust
  line.places[place.owner] = place
  line.changed[place.owner] = true
  line.last = math.max(line.last, over_at(place))
end

-- A place is there no more under this name.
local function drop(line, owner)
  line.places[owner] = false
  put(line, owner, false)
end

-- The line of a key. `text`: what MGET says of it, if that is known.
local function load(key, text)
  local line = {key = key, hash = false, mark = 0, quiet = math.huge, kept = 0, noted = 0, capacity = 0, used = 0, waiting = 0,
    unfair = 0, ranks = 0, first = 1, slots = 0, last = 0, ended = '', fields = {}, changed = {}, places = {}}
  if text == nil then
    text = redis.call('MGET', key)[1]
  end
  if not text then
    local header, ended = unpack(redis.call('HMGET', key, '=', '!'))
    if header then
      line.ended = ended or ''
      local mark, quiet, kept, noted, capacity, used, waiting, unfair, ranks, first, slots = string.match(header, HEADER)
      line.hash = true
      line.mark, line.quiet, line.kept, line.noted = mark + 0, quiet + 0, kept + 0, noted + 0
      line.capacity, line.used = capacity + 0, used + 0
      line.waiting, line.unfair, line.ranks, line.first, line.slots =
        waiting + 0, unfair + 0, ranks + 0, first + 0, slots + 0
    elseif redis.call('EXISTS', key) == 1 then
      error('this is no line')
    end
  elseif string.find(text, '^%D', 17) or #text == 16 then
    line.mark, line.text, line.ended = string.sub(text, 1, 16) + 0, text, string.sub(text, 17)
    put(line, '!', line.ended ~= '' and line.ended)
  else
    line.text = text
    local cut = string.find(text, '\n', 71, true)
    line.ended = cut and string.sub(text, cut + 1) or ''
    put(line, '!', line.ended ~= '' and line.ended)
    local holder, capacity = enter(string.sub(text, 71, (cut or 0) - 1), 0)
    holder.token, holder.since = string.sub(text, 1, 16) + 0, string.sub(text, 33, 48) + 0
    holder.expires = string.sub(text, 17, 32) + holder.ttl
    holder.rank, holder.slot = 1, 1
    line.mark, line.capacity, line.used, line.ranks, line.first, line.slots =
      holder.token, capacity, holder.weight, 1, 2, 1
    line.quiet = holder.expires + holder.delay
    put(line, '@1', holder.owner)
    touch(line, holder)
  end
  return line
end

-- The one holder as a string, if there is nothing else to tell.
local function as_text(line)
  if line.hash or line.waiting > 0 or line.slots ~= 1 then
    return
  end
  local holder = find(line, get(line, '@1'))
  if holder.token ~= line.mark or holder.evicted > 0 or string.find(holder.owner, '~', 1, true) then
    return
  end
  return string.format('%016.0f%016.0f%016.0f%s000000%s %s%s', holder.token, holder.expires - holder.ttl, holder.since,
    NEVER, holder.owner, holder.detail, line.ended ~= '' and '\n' .. line.ended or '')
end

-- What was a string is one no more. A full server refuses to write it once more, before anything is changed.
local function become_hash(line)
  if line.text then
    redis.call('SET', line.key, line.text, 'KEEPTTL')
    redis.call('DEL', line.key)
  end
  line.hash = true
end

-- Set fields. Whoever may not do this undoes nothing: what was a string is one again.
local function write(line, words, left)
  local written = redis.pcall(unpack(words))
  if type(written) == 'table' and written['err'] then
    if line.text then
      redis.call('SET', line.key, line.text, 'PX', string.format('%.0f', left / 1000))
    end
    error(redis.REDIS_VERSION_NUM and written or written['err'], 0)
  end
  line.text = nil
end

local function save(line, now)
  local key = line.key
  if line.slots == 0 and line.waiting == 0 then
    if line.mark > 0 then
      line.text = string.format('%016.0f%s', line.mark, line.ended)
      redis.call('SET', key, line.text, 'PX', string.format('%.0f', (unrecovered(line) and YEAR or DAY) / 1000))
    end
    line.hash, line.fields, line.changed, line.places = false, {}, {}, {}
    line.ranks, line.first, line.kept, line.noted = 0, 1, 0, 0
    return
  end
  local left = math.max(line.last - now, 0) + ((line.robust or unrecovered(line)) and YEAR or DAY)
  local text = as_text(line)
  if text then
    line.text = text
    redis.call('SET', key, text, 'PX', string.format('%.0f', left / 1000))
    return
  end
  local kept = now + left > line.kept
  if kept then
    line.kept = now + left + HOUR
  end
  if line.waiting == 0 then
    line.first = line.ranks + 1
  end
  local words = {'HSET', key, '=', string.format('%.0f %.0f %.0f %.0f %.0f %.0f %d %d %.0f %.0f %d', line.mark,
    math.min(line.quiet, NEVER + 0), line.kept, line.noted, line.capacity, line.used, line.waiting, line.unfair, line.ranks,
    line.first, line.slots)}
  local gone = {'HDEL', key}
  become_hash(line)
  for field in pairs(line.changed) do
    local place = line.places[field]
    local value = place and string.format('%016.0f%016.0f%016.0f%d %.0f %d %s', place.token, place.expires,
      place.since, place.evicted, place.rank, place.slot, place.detail) or line.fields[field]
    if value then
      words[#words + 1], words[#words + 2] = field, value
    else
      gone[#gone + 1] = field
    end
    if #words >= MOST_WORDS then
      write(line, words, left)
      words = {'HSET', key}
    elseif #gone >= MOST_WORDS then
      redis.call(unpack(gone))
      gone = {'HDEL', key}
    end
  end
  line.changed = {}
  if #words > 2 then
    write(line, words, left)
  end
  if #gone > 2 then
    redis.call(unpack(gone))
  end
  if kept then
    redis.call('PEXPIRE', key, string.format('%.0f', (line.kept - now) / 1000))
  end
end
