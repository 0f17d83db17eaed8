"""The simulator: the third driver, with simulated processes, networks, clocks and servers.

    timeline           virtual time: a heap of events
    driver             runs the flows that ship, under the rules at the head of `_core.flow`
    process            one client process: its own clock, coordinator core and keeper; it may be paused or crash
    network            carries requests, replies and pushes: late, twice, or not at all
    engine             the store that ships, on clocks that drift and jump; it may stall, and it may lose its data
    resource           what the locks protect: once behind a fence, once without, for contrast
    faults             which faults a seed has, how often, and when
    workload           the clients' rounds: acquire (`workload_recipes`), use the lease (`workload_steps`), release
    invariants         what must hold, checked after each step
    planted            known bugs, patched into the code that ships, that the invariants must catch
    seed, seeds, cli   run one seed; run many on several cores; the command

All random choices come from one seeded generator, and nothing depends on the order of a set or on the real clock: a
seed can be replayed exactly.
"""
