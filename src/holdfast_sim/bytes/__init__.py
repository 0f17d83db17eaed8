"""The simulation to the byte: an engine's own client, over simulated connections, to simulated servers.

    world       one seed's world: client processes, machines of servers, the network between them
    process     one client process: it opens the engine, runs the workload, and closes
    fork        what a forked child has of its parent
    observer    what stands between a coordinator and its client: it measures every call, and carries the resource
    machine     the machines that servers run on: their clocks, and what listens there
    network     what becomes of each connection and of its bytes
    profile     which faults a seed has
    schedule    when the faults of the machines and processes happen
    invariants  what must hold; rules at its head
    seed        runs one seed: faults, calm, everybody once more, close
    engines     per engine: its servers, its faults, what may be left at them
    planted     known bugs of clients, which the invariants must find

The workload, the driver and the invariants of leases and deadlines are those of the simulator itself.
"""
