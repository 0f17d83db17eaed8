-- Take: vote for a ballot, and hold for its owner.
--
--   KEYS   hold, marks (the memory stands beside them)
--   ARGV   ttl and delay in ms, the hold as it is to stand here; and since when it waits, if it is going to
--
-- Answers:
--   1                  yes
--   'H' mark ms        no: somebody holds it, for so long
--   'M' mark           no: free, but a ballot must go above this mark
--   'A'                no vote: this node has lost its memory
--
-- Yes iff the name is free or the owner's own, and its mark is below the ballot. The very same take again, the same yes
-- again. Hold and mark change in one step.
--
-- The first lines are the uncontended take of a name that is known: two commands. A node without memory knows no names.

if redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[1]) then
  if redis.call('ZADD', KEYS[2], 'XX', 'GT', 'CH', string.sub(ARGV[2], 1, 20), KEYS[1]) == 1 then
    return 1
  end
  redis.call('DEL', KEYS[1])
end

-- include marks

local memory = redis.call('GET', KEYS[2] .. '/memory')
if not memory or string.byte(memory) ~= 43 then
  return 'A'
end
local ballot, hold = sub(ARGV[2], 1, 20), redis.call('GET', KEYS[1])
local mark = mark_of(KEYS[2], KEYS[1], memory)
if hold then
  if not is_held_by(hold, owner_of(ARGV[2])) then
    if ARGV[3] then -- no place in a line, only seen by others for two seconds; it says so again with every try
      local time, waiters = redis.call('TIME'), KEYS[2] .. '/waiters'
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      redis.call('ZADD', waiters, string.format('%.0f', now + 2000), ARGV[3] .. KEYS[1] .. '\n' .. sub(ARGV[2], 21))
      redis.call('ZREMRANGEBYSCORE', waiters, '-inf', string.format('%.0f', now)) -- whoever has left without a word
      redis.call('PEXPIRE', waiters, 4000)
    end
    return 'H' .. string.format('%020.0f', mark) .. redis.call('PTTL', KEYS[1])
  end
  if sub(hold, 1, 20) == ballot and is_live(KEYS[1], hold) then
    return 1
  end
end
if mark >= tonumber(ballot) then
  return 'M' .. string.format('%020.0f', mark)
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])
raise(KEYS[2], KEYS[1], ballot)
return 1
