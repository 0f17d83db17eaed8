"""A simulated Redis 7.0: one server, its replicas, sentinels and clusters of them, to the byte. See `server`."""
