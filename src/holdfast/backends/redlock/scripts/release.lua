-- Release: clear what this owner holds here, up to this ballot, never a later one.
--
--   KEYS   hold, marks, and the trace if there may be one
--   ARGV   the hold as the take has written it; ms for which the name stays closed, 0 if it shall not; and the waiter as
--          `take` has written it down (see turns.lua), if it has. Without a delay, a trace or a waiter: the hold alone
--
-- Answers 1 if it was held until now, 0 if not, 'A' if this node has lost its memory.
--
-- A take of this owner that arrives after its own release is refused, because the mark rises to the ballot here, whether
-- or not it had come before; and so is an extension, because the trace is gone.
--
-- The first lines are the usual release of a mutex without options, for which nobody waits: two commands.

local hold = redis.call('GET', KEYS[1])
if hold == ARGV[1] and not ARGV[2] then
  redis.call('DEL', KEYS[1])
  return 1
end

-- include marks
-- include turns

local memory = redis.call('GET', KEYS[2] .. '/memory')
if not memory or string.byte(memory) ~= 43 then
  return 'A'
end
local ballot, owner = sub(ARGV[1], 1, 20), owner_of(ARGV[1])
if KEYS[3] and redis.call('GET', KEYS[3]) == ballot .. owner then
  redis.call('DEL', KEYS[3])
end
-- Who took it here with this very ballot has raised the mark and left the line; an extension may have taken it, too.
local taken = is_held_by(hold, owner) and sub(hold, 1, 20) == ballot
if not taken and mark_of(KEYS[2], KEYS[1], memory) < tonumber(ballot) then
  raise(KEYS[2], KEYS[1], ballot)
end
if ARGV[3] and ARGV[3] ~= '' and (KEYS[3] or not taken) then
  leave_line(KEYS[2], KEYS[1], ARGV[3])
end
if hold and is_reserved_for(hold, owner) then
  hand_over(KEYS[2], KEYS[1], owner)
  return 0
end
if not is_held_by(hold, owner) or sub(hold, 1, 20) > ballot then
  return 0
end
local held = is_live(KEYS[1], hold)
if held and ARGV[2] and ARGV[2] ~= '0' then
  redis.call('SET', KEYS[1], NOBODY .. sub(hold, 21), 'PX', ARGV[2])
elseif is_met(hold) then
  hand_over(KEYS[2], KEYS[1], owner)
else
  redis.call('DEL', KEYS[1])
end
return held and 1 or 0
