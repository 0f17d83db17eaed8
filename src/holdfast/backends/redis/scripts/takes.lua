-- Takes: many claims, each by itself, in one call.
--
--   KEYS   one line for each claim
--   ARGV   for each claim: "owner detail" (see forms.lua), a day, its ttl and its delay in ms; at the end the key in which names
--          are noted for which somebody waits, if there is one.
--
-- Answers for each claim what take.lua does, or 0: nothing was done, it is to be taken by a call of its own. That is so
-- for one that has yet to subscribe ('?' for its channel), where its name is not free; and where there was an error.

-- include queue

local time = redis.call('TIME')
local clock = time[1] .. string.sub('00000' .. time[2], -6)
local now = time[1] * 1000000 + time[2]
local fresh = clock .. clock .. clock .. '9999999999999999000000'
local index = ARGV[2 * #KEYS + 1]
local said = {}

local function take_one(key, asked, left)
  local text = redis.call('MGET', key)[1]
  if not text or text < clock and (#text == 16 or string.byte(text, 17) > 57) then -- as in take.lua
    if text then
      local ended = string.sub(text, 17)
      redis.call('SET', key, fresh .. (ended == '' and asked or asked .. '\n' .. ended), 'PX', left)
      return clock .. ended
    elseif redis.call('SET', key, fresh .. asked, 'PX', left, 'NX') then -- nor is it a hash
      return clock
    end
  end
  if string.find(asked, '^%S+ %? ') then
    return 0
  end
  return take({key}, text, {asked, left}, index, now)[1]
end

for i, key in ipairs(KEYS) do
  local done, reply = pcall(take_one, key, ARGV[2 * i - 1], ARGV[2 * i])
  said[i] = done and reply or 0
end

return said
