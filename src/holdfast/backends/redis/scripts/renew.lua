-- Renew: extend live holds, many in one call. Never brings an ended one back.
--
--   KEYS   one line for each claim
--   ARGV   for each claim: owner, ttl in µs, the token of the grant in 16 digits
--
-- Answers for each: 0 held, 1 refused, 2 evicted, 3 expired. The holder of a mutex is renewed without reading its line.

-- include line

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = string.format('%016.0f', now)
local replies = {}

local function renew(key, owner, token)
  local line = load(key)
  local mine = find(line, owner)
  if not mine or mine[TOKEN] == 0 or mine[TOKEN] ~= token + 0 then
    return 1
  end
  if mine[EVICTED] == 1 then
    return 2
  end
  if now >= mine[EXPIRES] then
    return 3
  end
  mine[EXPIRES] = now + mine[TTL]
  notice(line, mine)
  save(key, line, now)
  return 0
end

for i, key in ipairs(KEYS) do
  local owner, ttl, token = ARGV[3 * i - 2], ARGV[3 * i - 1] + 0, ARGV[3 * i]
  local text = redis.call('GET', key)
  local first = text and string.byte(text)
  if text and first >= 48 and first <= 57 and string.sub(text, 71, 71 + #owner) == owner .. ' ' then
    if string.sub(text, 1, 16) ~= token then
      replies[i] = 1
    elseif now < string.sub(text, 17, 32) + ttl then
      redis.call('SET', key, string.sub(text, 1, 16) .. clock .. string.sub(text, 33), 'PX',
        string.format('%.0f', ttl / 1000 + DAY))
      replies[i] = 0
    else
      replies[i] = 3
    end
  else
    replies[i] = renew(key, owner, token)
  end
end
return replies
