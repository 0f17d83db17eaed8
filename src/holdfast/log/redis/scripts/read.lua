-- A page of a stream.
--
--   KEYS   all, stream
--   ARGV   first version, how many events at most, how many bytes of data at most (the event that passes them is given)
--
-- Answers {version of the stream, its oldest version, events}. The page ends at a gap, which only somebody who deletes
-- by hand can have made.

local last, oldest = unpack(redis.call('HMGET', KEYS[2], 'last', 'oldest'))
last, oldest = last or '0', oldest or '1'
local first, final = tonumber(ARGV[1]), math.min(tonumber(last), ARGV[1] + ARGV[2] - 1)
if first > final then
  return {last, oldest, {}}
end
local fields = {}
for version = first, final do
  fields[#fields + 1] = string.format('v:%.0f', version)
end
local events, size = {}, 0
for _, position in ipairs(redis.call('HMGET', KEYS[2], unpack(fields))) do
  local event = position and redis.call('XRANGE', KEYS[1], position, position)[1]
  if not event then
    break
  end
  local value = event[2]
  events[#events + 1] = {event[1], value[2], value[4], value[8], value[10], value[12]}
  size = size + #value[12]
  if size >= tonumber(ARGV[3]) then
    break
  end
end
return {last, oldest, events}
