"""The simulator: the third driver, and a world that does its worst to it.

    timeline   virtual time, and a heap of what happens next
    driver     runs the flows that ship, under the rules at the head of `_core.flow`
    process    one client: its own clock, its own coordination and keeper; it may stop, and it may die
    network    carries requests, replies and pushes: late, twice, or not at all
    engine     the store that ships, on clocks that drift and jump; it may stall, and it may forget
    resource   what the locks protect: once behind a fence, once without, for contrast
    weather    which of these faults a seed has, and when
    workload   what the clients do, in rounds: ask (`asking`: all recipes, random options), work (`body`), let go
    watch      the invariants, checked after each step
    planted    known bugs, patched into the code that ships, that the invariants must catch

All chance comes from one seeded generator, and nothing depends on the order of a set or on the real clock: a seed
is a story, and it can be told again.
"""
