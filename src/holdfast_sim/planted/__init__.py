"""Known bugs, planted into the code that ships: the watchers must find each of them.

Each is a small function that patches one thing; `planted(name)` puts it in for the length of a `with`. Nothing that
ships has a switch for this. Each names the invariant that is there to catch it; the numbers in brackets are the traps
of other libraries that it is taken from.

    at_the_engine   what the server keeps: the line, its order, its expiries, its tokens
    in_flows        asking, waiting, withdrawing, letting go
    in_keeping      renewal, deadlines, validity
    at_the_resource the fence
"""

from . import at_the_engine, at_the_resource, in_flows, in_keeping
from .registry import BUGS, Bug, Patch, planted

__all__ = ["BUGS", "Bug", "Patch", "at_the_engine", "at_the_resource", "in_flows", "in_keeping", "planted"]
