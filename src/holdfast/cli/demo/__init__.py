"""`holdfast demo`: a holder is paused beyond its ttl, another takes over, the first wakes up and writes.

1. Real processes, a real engine (the embedded file), a real ledger (an SQLite database as a user would have it).
2. The same script twice; the only difference is the fence.
3. Every step is a handshake. The one thing that is waited for by time is the ttl itself.
"""
