-- The oldest events of the log up to a position.
--
--   KEYS   all
--   ARGV   position, how many at most
--
-- Answers with {position, name of its stream, version} of each. Data is read in small chunks: it may be large, and is not sent.

local found, from, most = {}, '-', tonumber(ARGV[2])
while #found < most do
  local chunk = math.min(20, most - #found)
  local page = redis.call('XRANGE', KEYS[1], from, ARGV[1], 'COUNT', chunk)
  for _, entry in ipairs(page) do
    found[#found + 1] = {entry[1], entry[2][2], entry[2][4]}
  end
  if #page < chunk then
    break
  end
  from = behind(page[chunk][1])
end
return found
