-- A page of the log.
--
--   KEYS   all, truncated
--   ARGV   the position to begin at, how many events at most, how many bytes of data at most
--
-- Answers {the highest position that was removed, 1 if more may be there, events}.

local limit = tonumber(ARGV[2])
local events, _, more = scan(KEYS[1], ARGV[1], ARGV[1], limit, limit, tonumber(ARGV[3]), 0, 1)
return {redis.call('GET', KEYS[2]) or '0-0', more, events}
