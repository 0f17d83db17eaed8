-- Claim a partition of a consumer, and read what lies behind its cursor.
--
--   KEYS   all, truncated, cursors of the consumer, mark of the partition's fence
--   ARGV   token in 19 digits, part, parts, position to read behind, if it is behind the cursor;
--          how many events to give at most, how many to look at at most, how many bytes of data at most,
--          '1' if events that were removed may be passed over
--
-- Answers {'ok', cursor, position read behind, highest position that was removed, 1 if more may be there, last position
-- looked at, events}; or, with nothing changed, {'fence', mark} or {'parts', the number that the cursors are for}.
--
-- A partition without events moves its cursor past those of the others, unless it was given some that it has not
-- acknowledged: else it would look at them again and again, and be told of truncations that do not concern it.

local all, truncated, cursors, mark = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, part, parts, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local stands = redis.call('GET', mark)
if stands and stands > token then
  keep_refusal(mark, token, stands, '')
  return {'fence', stands}
end
local known = redis.call('HGET', cursors, 'parts')
if known and known ~= parts then
  return {'parts', known}
end
if stands ~= token then
  redis.call('SET', mark, token)
end

local cursor = redis.call('HGET', cursors, part) or '0-0'
local removed = redis.call('GET', truncated) or '0-0'
local begin = is_before(cursor, after) and after or cursor
local events, reached, more = scan(all, behind(begin), begin, tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]),
  tonumber(part), tonumber(parts))
if #events == 0 and begin == cursor and is_before(begin, reached) and (ARGV[8] == '1' or not is_before(begin, removed)) then
  redis.call('HSET', cursors, 'parts', parts, part, reached)
end
return {'ok', cursor, begin, removed, more, reached, events}
