-- Swap: write a record if its version is the expected one (0: there is none), or delete it.
--
--   KEYS   the record, the index, the state
--   ARGV   its key in the index, the expected version, owner, ttl in µs, for how many ms it is kept; and the data, if it
--          is not to be deleted
--
-- Answers {1, version}, {1} if it was deleted, or {0, what is there (see read_records.lua), if anything}.
--
-- The record is written last: a server or a user's rights that refuse one of the commands refuse an earlier one, and so
-- nothing was done. (A new record can have its end only after it is written: without one it is deleted again.) The first
-- write is one that a full server refuses.

-- include record

local LOOK_EVERY, LOOK_COUNT = 4, 12 -- looks at three for each that is added: what is gone does not pile up
local record, index, state = KEYS[1], KEYS[2], KEYS[3]
local key, data = ARGV[1], ARGV[6]

-- Look at the next keys of the index, and drop those whose records are gone.
local function tidy(mark, cursor)
  local from = cursor == '' and '-' or '(' .. cursor
  local noted = redis.call('ZRANGE', index, from, '+', 'BYLEX', 'LIMIT', 0, LOOK_COUNT)
  redis.call('HSET', state, 'mark', mark, 'turn', '0', 'cursor', noted[LOOK_COUNT] or '')
  local prefix, records = string.sub(record, 1, -1 - #key), {}
  for i, other in ipairs(noted) do
    records[i] = prefix .. other
  end
  if #noted == 0 or redis.pcall('EXISTS', unpack(records)) == #noted then -- mostly, and in one command
    return
  end
  for i, other in ipairs(noted) do
    if redis.pcall('EXISTS', records[i]) == 0 then -- an error (the slot is moving) says nothing about it
      redis.call('ZREM', index, other)
    end
  end
end

local found = show(record)
local last = found and found[1] or 0

if last ~= ARGV[2] + 0 then
  return {0, found}
end
if not data then
  redis.call('ZREM', index, key)
  redis.call('DEL', record)
  return {1}
end

local mark, turn, cursor = unpack(redis.call('HMGET', state, 'mark', 'turn', 'cursor'))
local version = math.max(now, (mark or 0) + 1, last + 1)
local keep = ARGV[5] + 0
local text = string.format('%.0f', version)
local alive = ARGV[4] == '0' and '0' or string.format('%.0f', now + ARGV[4])

if found then
  redis.call('HSET', state, 'mark', text)
  keep_index(index, keep)
  redis.call('PEXPIRE', record, ARGV[5])
  redis.call('HSET', record, 'v', text, 'a', alive, 'k', ARGV[5], 'o', ARGV[3], 'd', data)
  return {1, version}
end

turn = (turn or 0) + 1
if turn == LOOK_EVERY then
  tidy(text, cursor or '')
else
  redis.call('HSET', state, 'mark', text, 'turn', turn)
end
redis.call('ZADD', index, 0, key)
keep_index(index, keep)
redis.call('HSET', record, 'v', text, 'a', alive, 'k', ARGV[5], 'o', ARGV[3], 'd', data)
local kept = redis.pcall('PEXPIRE', record, ARGV[5])
if type(kept) == 'table' and kept['err'] then -- it must not stay for ever
  redis.call('DEL', record)
  error(redis.REDIS_VERSION_NUM and kept or kept['err'], 0)
end
return {1, version}
