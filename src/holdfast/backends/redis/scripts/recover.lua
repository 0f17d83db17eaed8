-- Recover: the holder has put right what was left unrecovered.
--
--   KEYS   the line
--   ARGV   owner, the token of its grant
--
-- Answers 1 if it holds the name with this token, else 0: then nothing is changed.

-- include line

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local line = load(KEYS[1])
local mine = find(line, ARGV[1])
if not mine or mine.token ~= ARGV[2] + 0 or not holds(mine, now) then
  return 0
end
if unrecovered(line) then
  line.ended = string.sub(line.ended, 1, 1) .. '0' .. string.sub(line.ended, 3)
  put(line, '!', line.ended)
  save(line, now)
end
return 1
