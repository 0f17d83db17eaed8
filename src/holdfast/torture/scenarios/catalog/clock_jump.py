"""The engine's clock jumps forward: every lease has expired for the engine, while its holder goes on."""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..steps import A, B, clock_is_moved
from ..unsupported import no_clock

SCENARIO = Scenario(
    "clock-jump",
    "The engine's clock jumps an hour forward while a lock is held; its holder's own clock does not.",
    (
        A.acquires(ttl=60, renew=False),
        A.reads(),
        clock_is_moved(+3600),
        *B.works(patience=2),
        A.writes(),
        A.releases(),
        B.retries(),
    ),
    why_not=no_clock,
    remark=whether_b_came_in,
)
