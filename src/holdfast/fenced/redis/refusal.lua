-- Keep a refusal: count it, and write it over the oldest of the last 8. Answers 1, or 0 if it could not be kept.
--
-- The key is that of the mark with another room, so it is in the same slot. It is not among KEYS, and a failure is
-- caught: a user who has no right to it, or a full server, must not keep anybody from claiming, or from being refused.
-- It goes 30 days after the last refusal.

local function keep_refusal(mark_key, token, mark, owner)
  local key = 'holdfast/refusals' .. string.sub(mark_key, #'holdfast/fence' + 1)
  local now, count = redis.pcall('TIME'), redis.pcall('HINCRBY', key, 'count', 1)
  if now.err or type(count) ~= 'number' then
    return 0
  end
  local words = {now[1] .. '.' .. string.format('%06d', now[2]), token, mark ~= '' and mark or '-', owner}
  redis.pcall('HSET', key, count % 8, table.concat(words, ' '))
  redis.pcall('PEXPIRE', key, 2592000000)
  return 1
end
