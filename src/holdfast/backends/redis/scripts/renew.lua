-- Renew: extend live holds, many in one call. Never brings an ended one back.
--
--   KEYS   one line for each claim
--   ARGV   for each claim: owner, ttl in µs, the token of the grant in 16 digits
--
-- Answers for each: 0 held, 1 refused, 2 evicted, 3 expired, 4 nobody can tell. A holder for whom nobody waits is renewed
-- without reading its line. What cannot be read (a key of another kind, a line that somebody has overwritten) is no
-- hold any more, and a write that the server refuses says nothing about the others: each claim is renewed by itself.

-- include line
-- include not_written

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = string.format('%016.0f', now)
local replies = {}

local function renew(key, text, owner, token)
  local line = load(key, text)
  local mine = find(line, owner)
  if not mine or mine.token == 0 or mine.token ~= token + 0 then
    return 1
  end
  if mine.evicted > 0 then
    return 2
  end
  if now >= mine.expires then
    return 3
  end
  mine.expires = now + mine.ttl
  touch(line, mine)
  save(line, now)
  return 0
end

-- Renew the one holder, by cutting and joining strings; anybody else as the reference does it.
local function renew_quickly(key, owner, ttl, token)
  local text = redis.call('MGET', key)[1]
  if not text or string.sub(text, 71, 71 + #owner) ~= owner .. ' ' then
    return renew(key, text, owner, token)
  end
  if string.sub(text, 1, 16) ~= token then
    return 1
  end
  if now >= string.sub(text, 17, 32) + ttl then
    return 3
  end
  redis.call('SET', key, string.sub(text, 1, 16) .. clock .. string.sub(text, 33), 'PX',
    string.match(text, '^%S+ %S+ (%d+)', 71))
  return 0
end

for i, key in ipairs(KEYS) do
  local done, said = pcall(renew_quickly, key, ARGV[3 * i - 2], ARGV[3 * i - 1] + 0, ARGV[3 * i])
  replies[i] = done and said or not_written(said) and 4 or 1
end
return replies
