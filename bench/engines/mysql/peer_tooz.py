"""tooz, MySQL driver: GET_LOCK on a connection of its own per lock."""

from bench.tooz import tooz

CONTENDERS = (tooz("mysql", lambda target: target.url, cannot={"leases": "no expiry: nothing to keep"}),)
