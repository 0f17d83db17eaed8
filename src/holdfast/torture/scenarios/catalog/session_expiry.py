"""The engine ends the session that a lock lives with, while its holder works on."""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..steps import A, B, sessions_end
from ..unsupported import no_session

SCENARIO = Scenario(
    "session-expiry",
    "The engine ends the session that a lock lives with; its holder works on.",
    (
        A.acquires(ttl=60, renew=False),
        A.reads(),
        sessions_end(),
        *B.works(patience=8),
        A.writes(),
        A.releases(),
        B.retries(),
    ),
    why_not=no_session,
    remark=whether_b_came_in,
    on={
        "zookeeper": (  # a session there lives as long as the longest ttl, and ends by silence
            A.acquires(),
            A.reads(),
            sessions_end(),
            *B.works(patience=8),
            A.writes(),
            A.releases(),
            B.retries(),
        )
    },
)
