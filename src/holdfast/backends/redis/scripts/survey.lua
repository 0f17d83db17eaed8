-- Survey: who stands in these lines. Reads only, so that it may be asked of a busy server.
--
--   KEYS   lines
--
-- Answers {now, line…}: for each line where somebody stands {number of its key, capacity, place…}, and for each
-- place {owner, token (0: waits), weight, since, expires, info, whether it holds}.

-- include line

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local views = {now}
-- One line. What cannot be read (a key of another kind) is no line, and keeps nobody from the others.
local function look(i, key)
  local line = load(key)
  local view = {i, line.capacity}
  local places = spread(line)
  for _, place in ipairs(line.holders) do
    if occupies(place, now) then
      table.insert(places, place)
    end
  end
  table.sort(places, function(one, other) return one[RANK] < other[RANK] end)
  for _, place in ipairs(places) do
    if over_at(place) > now then
      table.insert(view, {place[OWNER], place[TOKEN], place[WEIGHT], place[SINCE], place[EXPIRES], place[INFO],
        holds(place, now) and 1 or 0})
    end
  end
  if #view > 2 then
    table.insert(views, view)
  end
end

for i, key in ipairs(KEYS) do
  pcall(look, i, key)
end
return views
