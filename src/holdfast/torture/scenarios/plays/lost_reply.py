"""The replies to a take and to a release are lost: the taker finds its own claim, and nobody is left outside."""

from ..model import Scenario, Telling
from ..reasons import no_network
from ..words import A, B


def _remark(telling: Telling) -> str:
    return "each finds its own claim, and the next is let in" if not telling.errors else "somebody was left outside"


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
