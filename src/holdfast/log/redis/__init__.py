"""The programs and keys of the event log in Redis, through the user's own client of redis-py."""
