-- Extend: keep holds for their owners, and take part in those that this node had no part in yet.
--
--   KEYS   marks, then hold and trace for each claim
--   ARGV   for how long a trace is kept in ms, then for each claim: ttl and delay in ms, the hold as it is to stand here
--
-- Answers 1 if all are held now, 'A' if this node has lost its memory, else 'X' and for each claim
--   1   held: extended, or taken again
--   0   gone
--   e   evicted by hand
--
-- Extended iff this very owner and ballot hold here. Taken again iff the name is free and its mark is below the ballot,
-- or the mark is this very owner's and ballot's own: its hold ran out here, and nobody came after it.

local memory = redis.call('GET', KEYS[1] .. '/memory')
if not memory or string.byte(memory) ~= 43 then
  return 'A'
end

-- include marks

local said, all = {}, true
for i = 2, #KEYS, 2 do
  local key, span, text = KEYS[i], ARGV[i], ARGV[i + 1]
  local ballot, owner = sub(text, 1, 20), owner_of(text)
  local hold, trace, own = redis.call('GET', key), redis.call('GET', KEYS[i + 1]), ballot .. owner
  local mark = mark_of(KEYS[1], key, memory)
  local verdict = '1'
  if is_held_by(hold, owner) and sub(hold, 1, 20) == ballot
      and (is_live(key, hold) or (trace == own and mark == tonumber(ballot))) then
    redis.call('PEXPIRE', key, span)
    redis.call('SET', KEYS[i + 1], own, 'PX', ARGV[1])
  elseif not hold and (mark < tonumber(ballot) or (trace == own and mark == tonumber(ballot))) then
    redis.call('SET', key, text, 'PX', span)
    redis.call('SET', KEYS[i + 1], own, 'PX', ARGV[1])
    raise(KEYS[1], key, ballot)
  else
    verdict = trace == ballot .. '!' .. owner and 'e' or '0'
    all = false
  end
  said[i / 2] = verdict
end
return all and 1 or 'X' .. table.concat(said)
