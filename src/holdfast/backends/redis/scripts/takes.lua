-- Takes: many claims of names that are free, each by itself, in one call.
--
--   KEYS   one line for each claim
--   ARGV   for each claim: "owner detail" (see forms.lua), a day, its ttl and its delay in ms
--
-- Answers for each claim its token, as digits, or 0: nothing was done, it is to be taken by a call of its own.
--
-- It is the first part of take.lua, for each. An error at one of them is found again by its own call.

local time = redis.call('TIME')
local clock = time[1] .. string.sub('00000' .. time[2], -6)
local fresh = clock .. clock .. clock .. '9999999999999999000000'
local texts = redis.call('MGET', unpack(KEYS))
local said = {}

for i, key in ipairs(KEYS) do
  local text = texts[i]
  said[i] = 0
  if not text or (#text == 16 and text < clock) then -- nobody stands there, and the mark (if any) is in the past
    local done
    if text then
      done = redis.pcall('SET', key, fresh .. ARGV[2 * i - 1], 'PX', ARGV[2 * i])
    else
      done = redis.pcall('SET', key, fresh .. ARGV[2 * i - 1], 'PX', ARGV[2 * i], 'NX') -- it may be a hash
    end
    if done and done['ok'] then
      said[i] = clock
    end
  end
end

return said
