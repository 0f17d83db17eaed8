"""A simulated ZooKeeper ensemble that speaks ZooKeeper's frames to the byte. It follows ZooKeeper 3.8.

    connection.py   one client's connection: frames in, replies and events out, in the order of its requests
    clients.py      the connections of one server
    records.py      how requests and replies are written (jute), operation numbers, error codes
    access.py       who may do what: digests, access control lists, the passwords of sessions
    tree.py         the nodes and sessions that are committed, and what a transaction does to them
    watches.py      who is to be told of what
    prepare.py      the leader makes a transaction of a request, or of its refusal
    sessions.py     the leader's list of sessions, and when each expires
    leadership.py   one leader's time in office: proposals, acknowledgements, commits, syncs
    replies.py      reads, and the replies of writes
    machine.py      what a server runs on: it hangs, it crashes
    member.py       one server: its disk, its part in the ensemble
    ensemble.py     the servers, the network between them, elections

What is known to differ from a real server is listed in `ensemble`.
"""

from .ensemble import Ensemble, EnsembleSettings
from .member import Member, Role

__all__ = ["Ensemble", "EnsembleSettings", "Member", "Role"]
