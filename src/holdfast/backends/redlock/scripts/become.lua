-- Become: change this node's memory, and marks with it, if it is still what it was seen to be.
--
--   KEYS   marks, then hold and trace for each name
--   ARGV   the memory as it was seen, the new one, for how long a trace is kept in ms, then for each name: its mark, and
--          whose it was (or nothing)
--
-- Answers 1 if it was done, else 0: it restarted, or somebody else was quicker.

local memory = KEYS[1] .. '/memory'
if redis.call('GET', memory) ~= ARGV[1] then
  return 0
end
for i = 2, #KEYS, 2 do
  local mark, owner = ARGV[i + 2], ARGV[i + 3]
  redis.call('ZADD', KEYS[1], mark, KEYS[i])
  if owner == '' then
    redis.call('DEL', KEYS[i + 1])
  else
    redis.call('SET', KEYS[i + 1], mark .. owner, 'PX', ARGV[3])
  end
end
redis.call('SET', memory, ARGV[2])
return 1
