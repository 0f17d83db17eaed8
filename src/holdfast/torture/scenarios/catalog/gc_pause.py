"""A holder is stopped for longer than its ttl, between its read and its write, and does not know it."""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..steps import A, B

SCENARIO = Scenario(
    "gc-pause",
    "A holder is stopped (a long GC, a frozen VM) for longer than its ttl, and writes when it wakes up.",
    (
        A.acquires(),
        A.reads(),
        A.is_stopped(),
        *B.works(patience=6),
        A.wakes_up(),
        A.writes(),
        A.releases(),
        B.retries(),
    ),
    remark=whether_b_came_in,
)
