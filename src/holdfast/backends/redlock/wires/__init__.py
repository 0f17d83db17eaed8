"""Sockets to the nodes of a quorum: a request leaves to all of them at once, and is answered when it is decided."""
