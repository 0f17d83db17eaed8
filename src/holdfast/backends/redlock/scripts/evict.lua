-- Evict: end the hold with this token, by hand, and refuse it from now on.
--
--   KEYS   hold, marks, trace
--   ARGV   token (20 digits), for how long a trace is kept in ms
--
-- Answers 1 if it was held here, 0 if not, 'A' if this node has lost its memory. The mark rises to the token, and the trace
-- says who was evicted, so that the holder is not taken in again here. The name stays closed for the lock's delay.

local memory = redis.call('GET', KEYS[2] .. '/memory')
if not memory or string.byte(memory) ~= 43 then
  return 'A'
end

-- include marks
-- include turns

if mark_of(KEYS[2], KEYS[1], memory) < tonumber(ARGV[1]) then
  raise(KEYS[2], KEYS[1], ARGV[1])
end
local hold, trace = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[3])
if hold and sub(hold, 1, 20) == ARGV[1] then
  local held, delay = is_live(KEYS[1], hold), tonumber(sub(hold, 21, 30))
  if held and delay > 0 then
    redis.call('SET', KEYS[1], NOBODY .. sub(hold, 21), 'PX', delay)
  elseif is_met(hold) then
    hand_over(KEYS[2], KEYS[1], owner_of(hold))
  else
    redis.call('DEL', KEYS[1])
  end
  redis.call('SET', KEYS[3], ARGV[1] .. '!' .. owner_of(hold), 'PX', ARGV[2])
  return held and 1 or 0
end
if trace and sub(trace, 1, 20) == ARGV[1] and sub(trace, 21, 21) ~= '!' then
  redis.call('DEL', KEYS[3])
end
return 0
