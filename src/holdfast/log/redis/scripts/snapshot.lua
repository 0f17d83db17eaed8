-- What a fold had come to: its version and its state, with a blank between them.
--
--   KEYS   snapshots of the stream
--   ARGV   name

return redis.call('HGET', KEYS[1], ARGV[1])
