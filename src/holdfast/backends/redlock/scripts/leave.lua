-- Leave: no longer seen waiting.
--
--   KEYS   marks
--   ARGV   owner
--
-- Answers 1 if it was, else 0.

return redis.call('HDEL', KEYS[1] .. '/waiting', ARGV[1])
