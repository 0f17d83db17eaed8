-- Append events to a stream iff it is at the expected version, unless that was done before.
--
--   KEYS   all, stream, mark of the stream's fence
--   ARGV   token in 19 digits ('' without a lease), expected version ('' for any), stream, its hash in 16 hex digits,
--          then for each event: id, type, data
--
-- Answers {'ok', version} if the events are there, by this call or by an earlier one with the same events;
-- {'fence', mark}, {'ids', id, …} or {'conflict', version} if they are not, and then nothing was changed.
--
-- 1. The same append is recognised before the fence and the version are looked at: a client sends a call again unseen
--    by us, and by then a newer holder may have appended. To refuse the copy would be a lie about the first one.
-- 2. Everything is checked before anything is written: a program that fails half-way is not rolled back.
-- 3. The id that Redis gives to an entry of `all` is the event's position: the time in ms and a count, never lower than
--    the one before, also if the clock goes back.

local all, stream, mark = KEYS[1], KEYS[2], KEYS[3]
local token, expected, name, hash = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count = (#ARGV - 4) / 3

local fields = {}
for n = 1, count do
  fields[n] = 'i:' .. ARGV[3 * n + 2]
end
fields[count + 1] = 'last'
local known = redis.call('HMGET', stream, unpack(fields))
local version, there = known[count + 1] or '0', {}
for n = 1, count do
  if known[n] then
    there[#there + 1] = ARGV[3 * n + 2]
  end
end

local function is_same_append()
  for n = 1, count do
    if known[n] - known[1] ~= n - 1 then
      return false
    end
    local position = redis.call('HGET', stream, 'v:' .. known[n])
    local event = position and redis.call('XRANGE', all, position, position)[1]
    if not event or event[2][10] ~= ARGV[3 * n + 3] or event[2][12] ~= ARGV[3 * n + 4] then
      return false
    end
  end
  return true
end

if #there == count and is_same_append() then
  return {'ok', known[count]}
end
local stands = token ~= '' and redis.call('GET', mark)
if stands and stands > token then
  keep_refusal(mark, token, stands, '')
  return {'fence', stands}
end
if #there > 0 then
  return {'ids', unpack(there)}
end
if expected ~= '' and expected ~= version then
  return {'conflict', version}
end

local last, entries = version, {}
for n = 1, count do
  last = string.format('%.0f', version + n)
  local position = redis.call('XADD', all, '*',
    's', name, 'v', last, 'h', hash, 'i', ARGV[3 * n + 2], 't', ARGV[3 * n + 3], 'd', ARGV[3 * n + 4])
  entries[4 * n - 3], entries[4 * n - 2] = 'v:' .. last, position
  entries[4 * n - 1], entries[4 * n] = fields[n], last
end
redis.call('HSET', stream, 'last', last, unpack(entries))
if token ~= '' and stands ~= token then
  redis.call('SET', mark, token)
end
return {'ok', last}
