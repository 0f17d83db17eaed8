"""The engine ends the session that a lock lives with, while its holder works on."""

from ..model import Scenario
from ..reasons import no_session
from ..remarks import whether_b_came_in
from ..words import A, B, sessions_end

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
        B.comes_again(),
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
            B.comes_again(),
        )
    },
)
