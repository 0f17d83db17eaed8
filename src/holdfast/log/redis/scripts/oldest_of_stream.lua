-- The oldest events of a stream below a version.
--
--   KEYS   stream
--   ARGV   version, how many at most, the stream's name
--
-- Answers with {position, name, version} of each.

local last, oldest = unpack(redis.call('HMGET', KEYS[1], 'last', 'oldest'))
local first = tonumber(oldest or 1)
local final = math.min(tonumber(last or 0), ARGV[1] - 1, first + ARGV[2] - 1)
local fields, found = {}, {}
for version = first, final do
  fields[#fields + 1] = string.format('v:%.0f', version)
end
if #fields == 0 then
  return found
end
for n, position in ipairs(redis.call('HMGET', KEYS[1], unpack(fields))) do
  found[n] = {position or '0-0', ARGV[3], string.sub(fields[n], 3)}
end
return found
