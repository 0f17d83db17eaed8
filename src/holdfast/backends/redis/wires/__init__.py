"""Sockets to Redis: redis-py opens and authenticates them, the requests on them are our own."""
