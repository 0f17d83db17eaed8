-- Something done to a key under its fence: in one step with the check that nobody newer has claimed it.
--
--   KEYS   the mark, then the keys of the work
--   ARGV   token, then the words of the work
--
-- Answers {1, what the work answers}, or {0, mark} if the token is not the mark ('' if there is none); then nothing
-- was done. The work stands below in place of WORK, and sees KEYS and ARGV without the first of each.

local mark, token = table.remove(KEYS, 1), table.remove(ARGV, 1)
mark = redis.call('GET', mark)
if mark ~= token then
  return {0, mark or ''}
end

local function work()
  --WORK--
end

return {1, work()}
