-- Move the cursor of a consumer's partition to an event.
--
--   KEYS   all, truncated, cursors of the consumer, mark of the partition's fence
--   ARGV   token in 19 digits, part, parts, position, nonce of this call
--
-- Answers {'ok'} if the cursor was moved, by this call or by an earlier one with the same nonce; or, with nothing
-- changed, {'fence', mark}, {'parts', the number that the cursors are for}, {'already', cursor} or {'unknown'}.

local all, truncated, cursors, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, part, parts, position, nonce = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if redis.call('HGET', cursors, part .. '/nonce') == nonce then
  return {'ok'}
end
local stands = redis.call('GET', mark)
if stands and stands > token then
  keep_refusal(mark, token, stands, '')
  return {'fence', stands}
end
local known = redis.call('HGET', cursors, 'parts')
if known and known ~= parts then
  return {'parts', known}
end
local cursor = redis.call('HGET', cursors, part) or '0-0'
if not is_before(cursor, position) then
  return {'already', cursor}
end
local event = redis.call('XRANGE', all, position, position)[1]
if event and not is_of(event[2][6], tonumber(part), tonumber(parts))
    or not event and is_before(redis.call('GET', truncated) or '0-0', position) then
  return {'unknown'}
end
if stands ~= token then
  redis.call('SET', mark, token)
end
redis.call('HSET', cursors, 'parts', parts, part, position, part .. '/nonce', nonce)
return {'ok'}
