-- Keep what a fold had come to, unless a later snapshot of the same name is there.
--
--   KEYS   snapshots of the stream
--   ARGV   name, version, state

local known = redis.call('HGET', KEYS[1], ARGV[1])
if not known or tonumber(string.match(known, '^%d+')) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
end
