"""Checkers: each judges one promise from a history alone. `judge` runs them all.

1. No false alarms. A checker calls broken only what no behaviour of a correct lock explains, given that a line is
   written before a call begins and after it has returned. What cannot be judged is reported as such, and is not a pass.
2. For each the tests have a second, brute-force version, too simple to be wrong; small histories are given to both.
3. O(n log n): a history of 100,000 operations is checked in about a second (`python -m holdfast.torture.checkers`).

    overlap        definite holds of one name fit into its capacity: mutual exclusion as the holders see it
    linearizable   one order of grants explains all that was observed: mutual exclusion as the engine sees it
    tokens         unique, and growing from a grant to every later one
    commits        the resource's own log: no write behind a newer claim
    updates        every acknowledged write is in the final state
    fifo           nobody overtook a claim that stood in line
    leftovers      nothing is held or waited for after all clients have ended
    in time        an acquisition with a timeout has an answer by then
"""

from .finding import Finding, HistoryViolation
from .judge import Judgement, VerdictLine, judge

__all__ = ["Finding", "HistoryViolation", "Judgement", "VerdictLine", "judge"]
