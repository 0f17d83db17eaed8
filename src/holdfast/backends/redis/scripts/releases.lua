-- Releases: many let go, waiting or holding, each by itself, in one call.
--
--   KEYS   one line for each
--   ARGV   for each: owner, ttl in µs
--
-- Answers for each 1 if it was held until now, 0 if not, 2: nothing was done, it is to be released by a call of its own.
--
-- It is release.lua for each. An error at one of them is found again by its own call.

-- include line
-- include left

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local sub = string.sub
local said = {}

local function release_one(key, owner, ttl)
  local text = redis.call('MGET', key)[1]
  if text and string.find(text, '^%D', 17) or text and #text == 16 then
    return 0
  end
  if text and sub(text, 71, 71 + #owner) == owner .. ' ' then
    local in_time = now < sub(text, 17, 32) + ttl
    leave_alone(key, text, owner, in_time)
    return in_time and 1 or 0
  end
  return release(key, text, owner, 0, now)
end

for i, key in ipairs(KEYS) do
  local done, held = pcall(release_one, key, ARGV[2 * i - 1], ARGV[2 * i] + 0)
  said[i] = done and held or 2
end

return said
