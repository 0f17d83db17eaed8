"""The Redis engine: one primary, Sentinel or Cluster; one Lua program per verb, one key per name."""
