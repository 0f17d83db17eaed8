"""A run with `once`: what becomes of effects, and of the results that callers were told.

1. An effect is applied at most once per key: behind the fence, whatever happens.
2. What was acknowledged as the result of a key is its result for ever: nobody is told another one.
3. A key with a result has its effect.
4. The tokens of a key's effects grow.
"""

from __future__ import annotations

from pathlib import Path

from .ledger import EffectLedger
from .run import EffectsResult, Workload, read_told


def judge_once(folder: Path, url: str, result: EffectsResult) -> None:
    """Compare what workers were told with what was applied."""
    results: dict[str, set[str]] = {}
    for _, told in read_told(folder, result):
        if told["what"] in ("completed", "seen"):
            results.setdefault(told["key"], set()).add(told["result"])
    ledger = EffectLedger(folder / "ledger.db")
    effects = ledger.effects()
    ledger.close()
    for key, tokens in effects.items():
        if len(tokens) > 1:
            result.violations.append(f"the effect of {key} was applied {len(tokens)} times, with the tokens {tokens}")
        if sorted(tokens) != tokens:
            result.violations.append(f"the tokens of {key} went back: {tokens}")
    for key, said in results.items():
        if len(said) > 1:
            result.violations.append(f"{key} had several results: {', '.join(sorted(said))}")
        if key not in effects:
            result.violations.append(f"{key} has a result, and no effect")


ONCE = Workload(
    "once",
    "holdfast.torture.effects.once_process",
    ("sqlite", "redis", "postgresql", "mysql", "etcd"),
    judge_once,
    lambda folder, url: EffectLedger.create(folder / "ledger.db"),
    stops=0.05,  # most of what it does is to look at a result
    dies=0.02,
)
