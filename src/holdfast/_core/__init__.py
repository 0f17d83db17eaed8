"""The algorithms, without I/O: no clock, no randomness, no socket, no thread. Drivers supply those."""
