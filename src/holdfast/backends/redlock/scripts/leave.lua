-- Leave: no longer seen waiting.
--
--   KEYS   marks
--   ARGV   the waiter as `take` has written it down: since when, the key of the hold, a new line, its claim
--
-- Answers 1 if it was, else 0.

return redis.call('ZREM', KEYS[1] .. '/waiters', ARGV[1])
