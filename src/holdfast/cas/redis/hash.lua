-- Write fields of a hash iff those that were read are as they were.
--
--   KEYS   key, receipt
--   ARGV   nonce, ms to keep the receipt, '1' or '0' (there was a hash, or none),
--          how many fields it had ('' if others do not matter),
--          how many fields to compare, then for each: field, 'is' | 'not' | 'or not' (there), value,
--          how many fields to set, then for each: field, value; and fields to delete
--
-- Answers 1 if this write is done, by this call or by an earlier one of the same nonce; 0 if somebody else was quicker.
-- The expiry of the key stays as it is.

if redis.call('GET', KEYS[2]) == ARGV[1] then
  return 1
end
if redis.call('EXISTS', KEYS[1]) ~= tonumber(ARGV[3]) then
  return 0
end
if ARGV[4] ~= '' and redis.call('HLEN', KEYS[1]) ~= tonumber(ARGV[4]) then
  return 0
end
local at = 6
for _ = 1, tonumber(ARGV[5]) do
  local value, rule = redis.call('HGET', KEYS[1], ARGV[at]), ARGV[at + 1]
  if value then
    if rule == 'not' or value ~= ARGV[at + 2] then
      return 0
    end
  elseif rule == 'is' then
    return 0
  end
  at = at + 3
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
local count = tonumber(ARGV[at])
at = at + 1
for _ = 1, count do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  at = at + 2
end
for field = at, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[field])
end
return 1
