"""The primary dies before its replica heard of a grant; the new primary grants the same lock again."""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..steps import A, B, replica_lags, replica_takes_over
from ..unsupported import no_replica

SCENARIO = Scenario(
    "failover-async",
    "The primary dies before its replica has heard of a grant, and the replica takes over.",
    (
        *A.works(),
        replica_lags(),
        A.acquires(ttl=60, renew=False),
        A.reads(),
        replica_takes_over(),
        *B.works(patience=10),
        A.writes(),
        A.releases(),
        B.retries(),
    ),
    why_not=no_replica,
    remark=whether_b_came_in,
)
