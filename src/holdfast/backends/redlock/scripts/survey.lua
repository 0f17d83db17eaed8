-- Survey: a chunk of what this node keeps.
--
--   KEYS   this node's memory
--   ARGV   cursor, pattern of keys, how many at once
--
-- Answers with JSON: {next cursor, this node's clock, the highest mark of the chunk, [key, record, …]} with the names that
-- are held, or closed; or 'A' if this node has lost its memory: then its marks say nothing.

local memory = redis.call('GET', KEYS[1])
if not memory or string.sub(memory, 1, 1) ~= '+' then
  return 'A'
end
local time = redis.call('TIME')
local clock = string.format('%.0f', time[1] * 1000000 + time[2])
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local highest = string.sub(memory, 2, 21)
local closed = {}
if #found[2] > 0 then
  for i, record in ipairs(redis.call('MGET', unpack(found[2]))) do
    if record then
      local mark = string.sub(record, 1, 20)
      highest = mark > highest and mark or highest
      if string.sub(record, 57, 72) > clock then
        closed[#closed + 1] = found[2][i]
        closed[#closed + 1] = record
      end
    end
  end
end
return cjson.encode({found[1], clock, highest, #closed > 0 and closed or 0})
