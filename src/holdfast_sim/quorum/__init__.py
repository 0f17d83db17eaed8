"""The simulator of a quorum: the flows of `backends.redlock`, and nodes that do what the programs do.

node        what each program does at a node, in Python; a test compares it with the real ones
waiters     who waits at a node, in order
wire        between one process and all nodes: messages late, lost, duplicated, out of order
world       processes with calendars of their own, nodes that stop, restart and lose their data
invariants  tokens unique and in real-time order, one holder at a time, nothing left behind
planted     known bugs that the invariants must find
"""
