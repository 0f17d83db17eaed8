-- Claim: raise the mark of a key iff the token is not below it.
--
--   KEYS   the mark
--   ARGV   token, in 19 digits: so that text compares as numbers do, beyond what a Lua number can hold
--
-- Answers with the mark as it is now; it is the token iff the claim was accepted.

local mark = redis.call('GET', KEYS[1])
if mark and mark > ARGV[1] then
  return mark
end
redis.call('SET', KEYS[1], ARGV[1])
return ARGV[1]
