-- Survey: who stands in these lines. Reads only, so that it may be asked of a busy server.
--
--   KEYS   lines
--
-- Answers {now, line…}: for each line where somebody stands, or that is left unrecovered, {number of its key, capacity,
-- how the hold ended that left it so (see forms.lua) or '', place…}, and for each
-- place {owner, token (0: waits), weight, since, expires, info, whether it holds}.

-- include line

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local views = {now}

-- One line. What cannot be read (a key of another kind) is no line, and keeps nobody from the others.
local function look(i, key)
  local line = load(key)
  local view, places = {i, line.capacity, ''}, {}
  if line.hash then
    local all = redis.call('HGETALL', key)
    for at = 1, #all, 2 do
      line.fields[all[at]] = all[at + 1]
      local place = string.find(all[at], '^[^=#@!]') and find(line, all[at])
      if place then
        table.insert(places, place)
      end
    end
  elseif line.slots == 1 then
    places[1] = find(line, get(line, '@1'))
  end
  table.sort(places, function(one, other) return one.rank < other.rank end)
  for _, place in ipairs(places) do
    if place.token == 0 and now < place.expires or occupies(place, now) then
      table.insert(view, {string.match(place.owner, '^%S+'), place.token, place.weight, place.since, place.expires,
        string.match(place.detail, '^%S+ %d+ %d+ %d+ %d %d+ %d+ %d+ (.*)'), holds(place, now) and 1 or 0})
    end
  end
  if #view == 3 then
    view[2] = 0
  end
  sweep(line, now) -- of what was read here: nothing is written
  if unrecovered(line) then
    view[3] = line.ended
  end
  if #view > 3 or view[3] ~= '' then
    table.insert(views, view)
  end
end

for i, key in ipairs(KEYS) do
  pcall(look, i, key)
end
return views
