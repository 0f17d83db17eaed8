-- Something done to a key under its fence: in one step with the check that nobody newer has claimed it.
--
--   KEYS   the mark, then the keys of the work
--   ARGV   token, owner, then the words of the work
--
-- Answers {1, what the work answers}, or {0, mark, 1 or 0} if the token is not the mark ('' if there is none) and the
-- refusal was kept or not (refusal.lua); then nothing was done. The work stands below in place of WORK, and sees KEYS
-- and ARGV without those of the fence.

local fence, token, owner = table.remove(KEYS, 1), table.remove(ARGV, 1), table.remove(ARGV, 1)
local mark = redis.call('GET', fence) or ''
if mark ~= token then
  return {0, mark, keep_refusal(fence, token, mark, owner)}
end

local function work()
  --WORK--
end

return {1, work()}
