"""The engine forgets everything while its clock is set back: no design survives that, and this shows how it fails.

A token comes from what the engine remembers, or from its clock. Without both, the next token lies below one that was
given out: the rightful new holder is refused by the fence, and the stale one is not. Where tokens are counted and not
timed, the same token can even be given twice, and then an acknowledged update can be lost behind the fence.
"""

from ..model import Scenario, ScenarioOutcome
from ..steps import A, B, clock_is_moved, engine_forgets
from ..unsupported import no_total_amnesia


def _remark(outcome: ScenarioOutcome) -> str:
    if outcome.lost:
        return "**beyond any design**: the same token is given twice, and the fence cannot tell the holders apart"
    if outcome.disordered:
        return "**beyond any design**: tokens go back, and the fence refuses the rightful holder until they caught up"
    return "survived: tokens come from the clients' own clocks as well"


SCENARIO = Scenario(
    "forgets-and-goes-back",
    "The engine comes back empty and its clock is an hour behind (where tokens are counted: it comes back empty).",
    (
        A.acquires(ttl=60, renew=False),
        A.reads(),
        clock_is_moved(-3600),
        engine_forgets(),
        *B.works(patience=10),
        A.writes(),
        A.releases(),
    ),
    why_not=no_total_amnesia,
    remark=_remark,
    unsurvivable=True,
    on={
        engine: (
            A.acquires(ttl=10, renew=False),
            A.reads(),
            engine_forgets(),
            B.acquires(patience=10),
            B.reads(),
            A.writes(),
            B.writes(),
            B.releases(),
            A.releases(),
        )
        for engine in ("etcd", "etcds", "zookeeper")
    },
)
