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
-- The first part is the uncontended take: three commands, and no arithmetic.

local time = redis.call('TIME')
local text

if #KEYS == 1 then
  local clock = time[1] .. string.sub('00000' .. time[2], -6)
  text = redis.call('MGET', KEYS[1])[1]
  if not text or (#text == 16 and text < clock) then -- nobody stands there, and the mark (if any) is in the past
    local holder = clock .. clock .. clock .. '9999999999999999000000' .. ARGV[1]
    if text then
      redis.call('SET', KEYS[1], holder, 'PX', ARGV[2])
      return clock
    elseif redis.call('SET', KEYS[1], holder, 'PX', ARGV[2], 'NX') then -- nor is it a hash
      return clock
    end
  end
end

-- include queue

local now = time[1] * 1000000 + time[2]
local index = ARGV[2 * #KEYS + 1]
local queue = index ~= '0'
local lines, claims, places, replies = {}, {}, {}, {}
local mismatch, all, waits = false, true, false

for i, key in ipairs(KEYS) do
  local asked, capacity = enter(ARGV[2 * i - 1], now)
  local line = open(key, text, capacity, now)
  lines[i], claims[i], replies[i] = line, asked, 0
  if line.capacity ~= capacity then
    replies[i] = -line.capacity
    mismatch = true
  end
end

if not mismatch then
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
      replies[i] = mine.token
      if mine.token == 0 then
        replies[i], waits = queued(line, mine, now), true
        note(line, mine, index)
      end
    elseif mine and mine.token == 0 then -- all or none
      leave(line, mine)
      drop(line, mine.owner)
    elseif not mine and fits(line, claims[i], now) then
      line.mark = math.max(line.mark + 1, now) -- the reference grants it, and takes it back
    end
    settle(line, now)
  end
  if waits and index and lines[1].waiting == 1 then
    -- Forget the names for which nobody waits any more, and all of them when nobody has waited anywhere for a day.
    redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%.0f', now))
    redis.call('PEXPIRE', index, ARGV[2])
  end
end

return #KEYS == 1 and replies[1] or replies
