"""Known bugs, planted into the code that ships: the invariants must find each of them.

Each is a small function that patches one thing; `planted(name)` plants it for the length of a `with`. Nothing that
ships has a switch for this. Each names the invariant that must catch it; the numbers in brackets are the traps of
other libraries that it is taken from.

    engine       what the server keeps: the line, its order, its expiries, its tokens
    acquisition  acquire, wait, withdraw, release
    renewal      renewal, deadlines, validity
    fence        the fence
    records      what the server keeps for `once` and actors
    once, actors, partitions    what is built on all that
"""

from . import acquisition, actors, engine, fence, once, partitions, records, renewal
from .registry import BUGS, Bug, Patch, planted

__all__ = [
    "BUGS",
    "Bug",
    "Patch",
    "acquisition",
    "actors",
    "engine",
    "fence",
    "once",
    "partitions",
    "planted",
    "records",
    "renewal",
]
