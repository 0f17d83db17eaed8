"""Strings and hashes of a Redis server."""
