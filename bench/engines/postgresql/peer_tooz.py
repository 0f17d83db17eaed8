"""tooz, PostgreSQL driver: a new connection for every lock taken, and a key of 16 bits."""

from bench.tooz import tooz

CONTENDERS = (tooz("postgresql", lambda target: target.url, cannot={"leases": "no expiry: nothing to keep"}),)
