"""The engine is killed and comes back without its memory, and grants again what is held.

On a quorum one node forgets, on Redlock after a grant by a bare majority: the rest must not be enough for another. On
ZooKeeper that node may be the leader, so the ttl outlives an election: else it is chance whether A's session does.
"""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..steps import A, B, engine_forgets
from ..unsupported import no_amnesia

SCENARIO = Scenario(
    "restart-amnesia",
    "The engine is killed and comes back empty (of a quorum: one node; of Redlock: one that made up the majority).",
    (
        A.acquires(ttl=60, renew=False),
        A.reads(),
        engine_forgets(),
        *B.works(patience=10),
        A.writes(),
        A.releases(),
        B.retries(),
    ),
    why_not=no_amnesia,
    remark=whether_b_came_in,
    on={
        "zookeeper": (
            A.acquires(ttl=30),
            A.reads(),
            engine_forgets(node=0),
            *B.works(patience=3),
            A.writes(),
            A.releases(),
            B.retries(),
        ),
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
            B.retries(),
        ),
    },
)
