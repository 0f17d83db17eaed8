-- What the programs have in common that read along the log; it stands before them.

-- Whether position a lies before position b. Those that Redis gives are exact as numbers of Lua.
local function is_before(a, b)
  local a_major, a_minor = string.match(a, '^(%d+)-(%d+)$')
  local b_major, b_minor = string.match(b, '^(%d+)-(%d+)$')
  if a_major ~= b_major then
    return tonumber(a_major) < tonumber(b_major)
  end
  return tonumber(a_minor) < tonumber(b_minor)
end

local function behind(position)
  local major, minor = string.match(position, '^(%d+)-(%d+)$')
  return string.format('%s-%.0f', major, minor + 1)
end

-- Whether a stream's hash of 64 bits, in hex, belongs to a partition. A number of Lua has 53 bits: a half at a time.
local function is_of(hash, part, parts)
  local high, low = tonumber(string.sub(hash, 1, 8), 16), tonumber(string.sub(hash, 9, 16), 16)
  return ((high % parts) * (2 ^ 32 % parts) + low) % parts == part
end

-- Look at the log from a position on, at most so many events and bytes of data (what passes them is still given).
-- Gives: the events of the partition; the last position that was looked at (or `reached`); whether more may be there.
local function scan(all, from, reached, limit, most_events, most_bytes, part, parts)
  local events, looked, size = {}, 0, 0
  while #events < limit and looked < most_events and size < most_bytes do
    local chunk = math.min(20, most_events - looked)
    if parts == 1 then
      chunk = math.min(chunk, limit - #events)
    end
    local page = redis.call('XRANGE', all, from, '+', 'COUNT', chunk)
    for _, entry in ipairs(page) do
      local value = entry[2]
      reached, looked, size = entry[1], looked + 1, size + #value[12]
      if parts == 1 or is_of(value[6], part, parts) then
        events[#events + 1] = {entry[1], value[2], value[4], value[8], value[10], value[12]}
        if #events == limit then
          return events, reached, 1
        end
      end
    end
    if #page < chunk then
      return events, reached, 0
    end
    from = behind(reached)
  end
  return events, reached, 1
end
