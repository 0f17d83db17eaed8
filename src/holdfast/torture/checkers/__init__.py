"""Checkers: each judges one promise from a history alone. `judge` runs them all.

1. No false alarms. A checker calls broken only what no behaviour of a correct lock explains, given that a line is
   written before a call begins and after it has returned. What can not be judged is said so, and is not a pass.
2. Each has a twin in the tests that is too slow and too simple to be wrong; small histories are given to both.
3. O(n log n): a history of 100,000 operations is checked in about a second (`python -m holdfast.torture.checkers`).

    overlap        definite holds of one name fit into its capacity: mutual exclusion, in the eyes of the holders
    linearizable   one order of grants explains what everybody saw: mutual exclusion, in the eyes of the engine
    tokens         unique, and growing from a grant to every later one
    commits        the resource's own log: no write behind a newer claim
    updates        every acknowledged write is in the end
    fifo           nobody overtook a claim that stood in line
    leftovers      nothing is held or waited for when everybody has gone
    in time        an acquisition with a timeout has an answer by then
"""

from .finding import Finding, Violation
from .judge import Judgement, Line, judge

__all__ = ["Finding", "Judgement", "Line", "Violation", "judge"]
