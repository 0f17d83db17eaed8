-- Whether an error is the server's refusal to write, which may pass: full, a replica, no disk, too few replicas,
-- a user whose rights were taken away.
local function not_written(why)
  local text = type(why) == 'table' and why['err'] or why
  for _, code in ipairs({'OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'NOPERM', 'CLUSTERDOWN', 'MASTERDOWN',
    "user executing the script can't"}) do -- NOPERM, in a program on Redis 7.0
    if string.find(text, code, 1, true) then
      return true
    end
  end
  return false
end
