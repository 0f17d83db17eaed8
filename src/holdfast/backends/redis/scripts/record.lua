-- How a record (`holdfast/record.py`) is kept, for the programs that include this.
--
-- A record is a hash, which Redis removes by itself once its time is over (PEXPIRE):
--
--   v   version: max(last + 1, the server's clock in µs); `mark` of the state is the last one of all records
--   a   alive until, in µs on the server's clock
--   k   for how many ms it is kept after each write and touch
--   o   owner
--   d   data
--
-- Records that stand in one slot have in that slot, too:
--
--   the index   a sorted set of their keys, all with the score 0, for lists in the order of keys. It ends soon after the
--               last record does. What Redis has removed by itself is dropped in small steps: see `swap_record`
--   the state   a hash: `mark`, so that no version is used twice even if the clock goes back after a record is gone;
--               `cursor`, the key up to which the index was looked through, and `turn`, how many were added since

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local SLACK_MS = 60000

-- What is there: {version, owner, data, µs for which it is alive}, or false.
local function show(key)
  local version, alive, owner, data = unpack(redis.call('HMGET', key, 'v', 'a', 'o', 'd'))
  return version and {version + 0, owner, data, math.max(0, alive - now)}
end

-- The index is there for as long as a record that is kept for so many ms from now on.
local function keep_index(index, keep)
  if redis.call('PTTL', index) < keep then
    redis.call('PEXPIRE', index, string.format('%.0f', keep + math.min(keep, SLACK_MS)))
  end
end
