"""The benchmark: holdfast, its peers and the bare engine, interleaved in one run, as ratios.

How it measures
1. Only ratios of one run mean anything: two runs on one machine differ by more than most libraries do. So
   every contender takes short turns next to the floor (the least work the engine allows, by hand), and a
   ratio is the median of the ratios of single rounds.
2. A turn is summed up by its own median and p99, and turns by the median of those: one bad moment of the
   machine spoils one turn, not the result. Gaps of hand-offs are pooled over turns instead, for their p99 is
   a rare event.
3. Every loop is bounded in count and in time.
4. A contender that is not installed, fails or cannot do a thing is listed with the reason, never dropped.
5. Wall-clock figures are reported here and never asserted in a test: a test that fails on a busy machine is
   noise.

To add an engine: a package in `bench/engines/`. To add a peer: a module in its engine's package with
`CONTENDERS`.
"""
