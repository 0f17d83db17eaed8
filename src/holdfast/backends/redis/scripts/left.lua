-- What the one holder of a name leaves who lets go, in a string (see forms.lua): the mark, and how its hold has ended. For
-- how long: what a robust claim leaves cleanly, for a day; what is to be put right, as long as it was kept.
local function leave_alone(key, text, owner, held)
  local cut = string.find(text, '\n', 71, true)
  local before = cut and string.byte(text, cut + 2) == 49 -- it is unrecovered
  local robust = before or string.find(text, '^%S+ %S+ %d+ %d+ %d+ [23] ', 71)
  local token = string.sub(text, 1, 16)
  if not robust then
    redis.call('SET', key, token .. (held and 'r0' or 'x0') .. token .. owner, 'KEEPTTL') -- a day from the last renewal, and some
  elseif not held then
    redis.call('SET', key, token .. 'x1' .. token .. owner, 'KEEPTTL')
  elseif before then
    redis.call('SET', key, token .. string.sub(text, cut + 1), 'KEEPTTL')
  else
    redis.call('SET', key, token .. 'r0' .. token .. owner, 'PX', 86400000)
  end
end
