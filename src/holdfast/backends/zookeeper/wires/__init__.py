"""The wires of ZooKeeper: sockets, threads and tasks around the session."""
