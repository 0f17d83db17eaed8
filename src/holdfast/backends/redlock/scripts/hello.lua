-- Hello: does this node remember? Asked on every connection before it is used.
--
--   KEYS   marks (the memory stands beside them)
--   ARGV   nonce (16 hex digits), longest ttl in µs (16 digits), '1' if whatever was answered survives a restart
--
-- Answers with this node's clock (16 digits) and its memory, which is one of
--   '+' floor (20) longest ttl (16) run (40) founding (16)   it remembers, and votes
--   'S' run (40) since (16) nonce (16)                       it does not, and was first seen so at `since`
--   'F' run (40) since (16) nonce (16) founding (16)         the same, while all nodes are being founded together
--
-- A memory of another run of the server came from its disk: it may be older than what was promised since, unless every
-- write was on disk before it was answered. It is dropped then, with all marks: a name that is known stands for a memory.
-- The longest ttl that anybody uses only grows.

local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local time = redis.call('TIME')
local clock = string.format('%.0f', time[1] * 1000000 + time[2])
local memory = redis.call('GET', KEYS[1] .. '/memory')
local sub = string.sub
local next = memory

if memory and sub(memory, 1, 1) == '+' then
  if sub(memory, 38, 77) ~= run then
    next = ARGV[3] == '1' and sub(memory, 1, 37) .. run .. sub(memory, 78) or nil
  end
  if next and sub(next, 22, 37) < ARGV[2] then
    next = sub(next, 1, 21) .. ARGV[2] .. sub(next, 38)
  end
elseif memory and sub(memory, 2, 41) ~= run then
  next = nil
end
if not next then
  redis.call('UNLINK', KEYS[1])
  next = 'S' .. run .. clock .. ARGV[1]
end
if next ~= memory then
  redis.call('SET', KEYS[1] .. '/memory', next)
end
return clock .. next
