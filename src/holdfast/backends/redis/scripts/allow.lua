-- Allow: the limiter's rule (GCRA, `_core/gcra.py`): one number per name, the theoretical arrival time.
--
--   KEYS   the rate
--   ARGV   interval, burst, cost, reserve (times in µs)
--
-- Answers {1 if allowed now or booked, else 0; µs to wait}. The number ends by itself once it lies in the past.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst, cost, reserve = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[4] + 0
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local after = arrival + interval * cost
local wait = math.max(0, after - interval * burst - now)
if wait > reserve then
  return {0, wait}
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', string.format('%.0f', (after - now) / 1000 + 1000))
return {1, wait}
