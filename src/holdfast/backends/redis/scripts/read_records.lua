-- Read records.
--
--   KEYS   records
--
-- Answers for each {version, owner, data, µs for which it is alive}, or nothing where there is none. What cannot be read (a
-- key of another kind) is no record, and keeps nobody from the others; a swap says what it is.

-- include record

local records = {}
for i, key in ipairs(KEYS) do
  local done, found = pcall(show, key)
  records[i] = done and found
end
return records
