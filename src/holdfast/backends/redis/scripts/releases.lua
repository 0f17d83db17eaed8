-- Releases: many holders of mutexes for which nobody waits let go, each by itself, in one call.
--
--   KEYS   one line for each
--   ARGV   for each: owner, ttl in µs
--
-- Answers for each 1 if it was held until now, 0 if not, 2: nothing was done, it is to be released by a call of its own.
--
-- It is the first part of release.lua, for each. An error at one of them is found again by its own call.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local sub = string.sub
local said = {}

for i, key in ipairs(KEYS) do
  local text, owner = redis.pcall('GET', key), ARGV[2 * i - 1]
  said[i] = 2
  if not text or #text == 16 then
    said[i] = 0
  elseif #text > 0 and sub(text, 71, 71 + #owner) == owner .. ' ' and sub(text, 65, 70) == '000000'
    and string.find(text, '^%d') then
    if redis.pcall('SET', key, sub(text, 1, 16), 'KEEPTTL')['ok'] then
      said[i] = now < sub(text, 17, 32) + ARGV[2 * i] and 1 or 0
    end
  end
end

return said
