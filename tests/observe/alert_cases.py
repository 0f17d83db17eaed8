"""For each alert: series that make it fire, and series that do not. In promtool's notation, a value a minute."""

from __future__ import annotations

FAMILY = 'engine="redis://a",family="orders/{id}"'


def ratio(metric: str, low: str, bound: str, slow: int) -> dict[str, str]:
    """A histogram in which `slow` of 100 samples a minute are above `bound`, and the others below `low`."""
    return {
        f'{metric}_bucket{{{FAMILY},le="{low}"}}': f"0+{100 - slow}x30",
        f'{metric}_bucket{{{FAMILY},le="{bound}"}}': f"0+{100 - slow}x30",
        f'{metric}_bucket{{{FAMILY},le="1.0"}}': "0+100x30",
        f'{metric}_bucket{{{FAMILY},le="+Inf"}}': "0+100x30",
    }


def outcomes(**counts: int) -> dict[str, str]:
    return {
        f'holdfast_acquisitions_total{{{FAMILY},outcome="{outcome}"}}': f"0+{count}x30"
        for outcome, count in counts.items()
    }


CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "HoldfastFenceRefused": (
        {'holdfast_refusals_total{kind="redis"}': "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1 1 1"},
        {'holdfast_refusals_total{kind="redis"}': "3x30"},
    ),
    "HoldfastLeasesLost": (
        {f'holdfast_losses_total{{{FAMILY},reason="expired"}}': "_x17 1 1 1 1"},
        {f'holdfast_losses_total{{{FAMILY},reason="max_hold"}}': "0+5x30"},
    ),
    "HoldfastUnrecovered": (
        {f"holdfast_engine_unrecovered{{{FAMILY}}}": "0x10 1x20"},
        {f"holdfast_engine_unrecovered{{{FAMILY}}}": "0x30", f"holdfast_recoveries_total{{{FAMILY}}}": "0+1x30"},
    ),
    "HoldfastEngineUnreachable": (
        {'holdfast_reachable{engine="redis://a"}': "1 1 1 1 1 1 1 1 1 0x20"},
        {'holdfast_reachable{engine="redis://a"}': "1 1 1 1 1 1 1 1 0 1x20"},
    ),
    "HoldfastAcquisitionSlow": (
        ratio("holdfast_wait_ttl_ratio", "0.1", "0.5", 5),
        ratio("holdfast_wait_ttl_ratio", "0.1", "0.5", 0),
    ),
    "HoldfastContention": (outcomes(at_once=60, waited=40), outcomes(at_once=75, waited=25)),
    "HoldfastHoldTooLong": (
        ratio("holdfast_hold_ttl_ratio", "0.5", "0.8", 5),
        ratio("holdfast_hold_ttl_ratio", "0.5", "0.8", 0),
    ),
    "HoldfastRenewalLate": (
        ratio("holdfast_left_ttl_ratio", "0.1", "0.2", 90),
        ratio("holdfast_left_ttl_ratio", "0.1", "0.2", 100),
    ),
    "HoldfastTimeouts": (outcomes(at_once=80, waited=10, timed_out=10), outcomes(at_once=90, timed_out=2, not_free=50)),
}
