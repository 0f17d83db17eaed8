"""The engine is killed and comes back without its memory, and grants again what is held.

On a quorum one node forgets, after a grant by a bare majority: the rest must not be enough for another grant.
"""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..words import A, B, engine_forgets

SCENARIO = Scenario(
    "restart-amnesia",
    "The engine is killed and comes back empty (of five Redlock nodes: one, which made up the majority).",
    (
        A.acquires(ttl=20, renew=False),
        A.reads(),
        engine_forgets(),
        *B.works(patience=10),
        A.writes(),
        A.releases(),
        B.comes_again(),
    ),
    remark=whether_b_came_in,
    on={
        "redlock": (
            *A.works(),
            A.is_cut_off("redis-4"),
            A.is_cut_off("redis-5"),
            A.acquires(ttl=10, renew=False),
            A.reads(),
            B.is_cut_off("redis-1"),
            B.is_cut_off("redis-2"),
            engine_forgets(node=2),
            *B.works(patience=2),
            A.writes(),
            A.releases(),
            A.is_back(),
            B.is_back(),
            B.comes_again(),
        )
    },
)
