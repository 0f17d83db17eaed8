-- Take: vote for a ballot, and hold for its owner.
--
--   KEYS   hold, marks (the memory stands beside them)
--   ARGV   ttl and delay in ms; where it listens if it is going to wait, else nothing; the hold as it is to stand here; and,
--          if it has asked before, since when (16 digits) and its place (16), once it has one
--
-- Answers:
--   1                  yes
--   'H' mark ms rank   no: somebody holds it, for so long (0: nobody knows); so many wait before this one
--   'M' mark           no: free, but a ballot must go above this mark
--   'A'                no vote: this node has lost its memory
--
-- Yes iff the name is free, reserved for the owner or its own, and its mark is below the ballot. The very same take again, the same yes
-- again. Hold and mark change in one step.
--
-- The first lines are the uncontended take, without any function: of a name that is known two commands (a node without
-- memory knows no names), of a new one five.

if not ARGV[4] and redis.call('SET', KEYS[1], ARGV[3], 'NX', 'PX', ARGV[1]) then
  local ballot = string.sub(ARGV[3], 1, 20)
  if redis.call('ZADD', KEYS[2], 'XX', 'GT', 'CH', ballot, KEYS[1]) == 1 then
    return 1
  end
  local memory, time = redis.call('GET', KEYS[2] .. '/memory'), redis.call('TIME')
  local day_ago = time[1] * 1000000 + time[2] - 86400000000
  if memory and string.byte(memory) == 43
      and tonumber(ballot) > math.max(day_ago, tonumber(string.sub(memory, 2, 21)))
      and redis.call('ZADD', KEYS[2], 'NX', ballot, KEYS[1]) == 1 then
    if string.byte(ballot, 20) == 48 then
      redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', day_ago))
    end
    return 1
  end
  redis.call('DEL', KEYS[1])
end

-- include marks
-- include turns

local memory = redis.call('GET', KEYS[2] .. '/memory')
if not memory or string.byte(memory) ~= 43 then
  return 'A'
end
local text, hold = ARGV[3], redis.call('GET', KEYS[1])
local ballot, owner = sub(text, 1, 20), owner_of(text)
local mark = mark_of(KEYS[2], KEYS[1], memory)
local waiter = (ARGV[4] and sub(ARGV[4], 1, 16) or sub(text, 5, 20)) .. ARGV[2] .. KEYS[1] .. '\n' .. sub(text, 21)
if hold and not is_reserved_for(hold, owner) then
  if not is_held_by(hold, owner) then
    local rank, left = 0, redis.call('PTTL', KEYS[1])
    if ARGV[2] ~= '' then
      local place = ARGV[4] and sub(ARGV[4], 17) or ''
      rank = join_line(KEYS[2], KEYS[1], waiter, place ~= '' and place or string.format('%.0f', mark))
      if sub(hold, 1, 20) ~= NOBODY and not is_met(hold) then
        redis.call('APPEND', KEYS[1], '\n')
      end
    end
    if sub(hold, 1, #RESERVED) == RESERVED then
      left = 0 -- until whoever it is for has held it
    end
    return string.format('H%020.0f%d %d', mark, left, rank)
  end
  if sub(hold, 1, 20) == ballot and is_live(KEYS[1], hold) then
    return 1
  end
end
if mark >= tonumber(ballot) then
  return 'M' .. string.format('%020.0f', mark)
end
if ARGV[4] then
  leave_line(KEYS[2], KEYS[1], waiter)
  if redis.call('EXISTS', line_of(KEYS[2], KEYS[1])) == 1 then
    text = text .. '\n'
  end
end
redis.call('SET', KEYS[1], text, 'PX', ARGV[1])
raise(KEYS[2], KEYS[1], ballot)
return 1
