"""The replies to a take and to a release are lost: the client finds its own claim again, and nothing stays locked."""

from ..model import Scenario, ScenarioOutcome
from ..steps import A, B
from ..unsupported import no_network


def _remark(outcome: ScenarioOutcome) -> str:
    return "each finds its own claim, and the next is let in" if not outcome.errors else "somebody was left outside"


SCENARIO = Scenario(
    "lost-reply",
    "The reply to a take is lost, and then the reply to its release.",
    (
        A.loses_a_reply(),
        A.acquires(ttl=10),
        A.reads(),
        A.writes(),
        A.loses_a_reply(),
        A.releases(),
        *B.works(patience=6),
    ),
    why_not=no_network,
    remark=_remark,
)
