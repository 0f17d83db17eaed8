"""Why an engine does not support a scenario; empty if it does."""

from __future__ import annotations

from ..engines import TorturedEngine


def no_clock(engine: TorturedEngine) -> str:
    if any(node.clock is not None for node in engine.nodes):
        return engine.cannot.get("clock-forward", "")
    return engine.cannot.get("clock-forward", "its servers were started without a clock of their own")


def no_network(engine: TorturedEngine) -> str:
    return "" if engine.network is not None else engine.cannot["partition"]


def no_replica(engine: TorturedEngine) -> str:
    return "" if engine.replica is not None else engine.cannot.get("failover", "it has no replica")


def no_session(engine: TorturedEngine) -> str:
    return "" if engine.end_sessions is not None and engine.sessions else "a lock does not live with a session here"


def no_amnesia(engine: TorturedEngine) -> str:
    return engine.cannot.get("amnesia", "")


def no_total_amnesia(engine: TorturedEngine) -> str:
    """Counted tokens need no clock to be given twice."""
    return engine.cannot.get("total-amnesia", "") or ("" if engine.counts_tokens else no_clock(engine))
