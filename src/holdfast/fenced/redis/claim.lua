-- Claim: raise the mark of a key iff the token is not below it.
--
--   KEYS   the mark
--   ARGV   token, in 19 digits: so that text compares as numbers do, beyond what a Lua number can hold; owner
--
-- Answers {the mark as it is now, 1 or 0 for a refusal that was kept or not}; the mark is the token iff the claim was
-- accepted. `keep_refusal` is refusal.lua.

local mark = redis.call('GET', KEYS[1])
if mark and mark > ARGV[1] then
  return {mark, keep_refusal(KEYS[1], ARGV[1], mark, ARGV[2])}
end
redis.call('SET', KEYS[1], ARGV[1])
return {ARGV[1], 1}
