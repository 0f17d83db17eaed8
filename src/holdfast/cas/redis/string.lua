-- Write a string iff it is as it was read.
--
--   KEYS   key, receipt
--   ARGV   nonce, ms to keep the receipt, '1' or '0' (there was a value, or none), the value as it was read, new value
--
-- Answers 1 if this write is done, by this call or by an earlier one of the same nonce; 0 if somebody else was quicker.
-- The expiry of the key stays as it is.

if redis.call('GET', KEYS[2]) == ARGV[1] then
  return 1
end
local value = redis.call('GET', KEYS[1])
if ARGV[3] == '1' and value ~= ARGV[4] or ARGV[3] == '0' and value then
  return 0
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
redis.call('SET', KEYS[1], ARGV[5], 'KEEPTTL')
return 1
