"""Two hold one lock each and want the other's: the deadlock must be detected, or both wait for ever."""

from ..model import Scenario, ScenarioOutcome
from ..steps import A, B


def _remark(outcome: ScenarioOutcome) -> str:
    told = set(outcome.errors.values())
    if told == {"DeadlockDetected"}:
        return "the one that closes the circle is told so at once (DeadlockDetected)"
    if told == {"NotAcquired"}:
        return "ended by its timeout: this engine has no line in which a circle could be seen"
    return "nobody was told"


SCENARIO = Scenario(
    "crossed-order",
    "A holds one lock and wants a second; B holds the second and wants the first.",
    (
        A.acquires("first", ttl=20),
        B.acquires("second", ttl=20),
        A.asks("second", patience=12, ttl=20),
        B.acquires("first", patience=6, ttl=20),
        B.releases("second"),
        A.hears("second"),
        A.reads("second"),
        A.writes("second"),
        A.releases("second"),
        A.releases("first"),
        B.retries("first"),
    ),
    remark=_remark,
)
