-- Leave: no longer waiting; what is reserved for this owner goes to the next one.
--
--   KEYS   hold, marks
--   ARGV   the waiter as `take` has written it down (see turns.lua), its owner
--
-- Answers 1 if it was waiting, else 0.

-- include marks
-- include turns

local hold, left = redis.call('GET', KEYS[1]), leave_line(KEYS[2], KEYS[1], ARGV[1])
if hold and is_reserved_for(hold, ARGV[2]) then
  hand_over(KEYS[2], KEYS[1], ARGV[2])
end
return left
