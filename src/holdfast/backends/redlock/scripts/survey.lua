-- Survey: a chunk of the holds of this node, or one hold.
--
--   KEYS   marks; and the one hold, if only that is of interest
--   ARGV   cursor, pattern of holds, how many at once
--
-- Answers with JSON: [next cursor, the highest of all marks, those who wait (once, with the first chunk), key, hold,
-- ms left, mark, key, …]; or 'A' if this node has lost its memory: then its marks say nothing.

local memory = redis.call('GET', KEYS[1] .. '/memory')
if not memory or string.byte(memory) ~= 43 then
  return 'A'
end
local top = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local highest = math.max(tonumber(string.sub(memory, 2, 21)), top and tonumber(top) or 0)
local sub = string.sub
local found = KEYS[2] and {'0', {KEYS[2]}} or redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local waiting = {}
if ARGV[1] == '0' then
  local time = redis.call('TIME')
  local now = string.format('(%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
  waiting = redis.call('ZRANGEBYSCORE', KEYS[1] .. '/waiters', now, '+inf')
end
local said = {found[1], string.format('%020.0f', highest), #waiting > 0 and waiting or 0}
for _, key in ipairs(found[2]) do
  local hold, mark = redis.call('GET', key), redis.call('ZSCORE', KEYS[1], key)
  if hold and sub(hold, 31, 31) ~= '>' then -- what is reserved is free, but for the order
    said[#said + 1] = key
    said[#said + 1] = hold
    said[#said + 1] = redis.call('PTTL', key)
    said[#said + 1] = mark and string.format('%020.0f', mark) or ''
  end
end
return cjson.encode(said)
