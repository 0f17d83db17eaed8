"""A holder is cut off from the engine, but not from the resource; its lease runs out, and it writes."""

from ..model import Scenario
from ..remarks import whether_b_came_in
from ..steps import A, B
from ..unsupported import no_network

SCENARIO = Scenario(
    "partition-holder",
    "A holder is cut off from the engine, but not from what the lock protects.",
    (
        A.acquires(),
        A.reads(),
        A.is_cut_off(),
        *B.works(patience=6),
        A.writes(),
        A.is_back(),
        A.releases(),
        B.retries(),
    ),
    why_not=no_network,
    remark=whether_b_came_in,
)
