-- Remove events, the oldest of their streams.
--
--   KEYS   all, truncated, then the streams
--   ARGV   for each event: position, the number of its stream, version
--
-- Answers nothing. Those that are gone already are passed over, so that it may be done again. Kept are the highest
-- position that was removed and, for each stream, its version and the oldest one that is left.

local all, truncated = KEYS[1], KEYS[2]
local highest, oldest = redis.call('GET', truncated) or '0-0', {}
for n = 1, #ARGV, 3 do
  local position, stream, version = ARGV[n], KEYS[2 + ARGV[n + 1]], ARGV[n + 2]
  local event = redis.call('XRANGE', all, position, position)[1]
  if event then
    redis.call('XDEL', all, position)
    redis.call('HDEL', stream, 'i:' .. event[2][8])
    if is_before(highest, position) then
      highest = position
    end
  end
  redis.call('HDEL', stream, 'v:' .. version)
  oldest[stream] = math.max(oldest[stream] or tonumber(redis.call('HGET', stream, 'oldest') or 1), version + 1)
end
redis.call('SET', truncated, highest)
for stream, version in pairs(oldest) do
  redis.call('HSET', stream, 'oldest', string.format('%.0f', version))
end
