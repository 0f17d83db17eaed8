"""What the clients of several engines share, as flows over connections: a pool, a multiplexer, work done together."""
