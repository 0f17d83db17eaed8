"""A run with actors: processes that tell and handle, faults, and what became of the effects on the states.

1. What was told has its effect once; what may have been told, once at most.
2. The tokens of a key's effects never go back: no zombie has acknowledged.
3. The messages of one teller have their effects in its order.
4. In the end no message is left, in an inbox or as a dead letter.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from ... import ActorSystem, connect
from .actor_process import KEYS_COUNT, NAME, put_effect
from .run import EffectsResult, Workload, read_told, wait_until

DRAIN_S = 60.0


def judge_actors(folder: Path, url: str, result: EffectsResult) -> None:
    """Have the rest handled in peace, and compare."""
    told: dict[str, list[str]] = {}
    for _, line in read_told(folder, result):
        if line["what"] == "told":
            told.setdefault(line["key"], []).append(line["result"])
    with connect(url) as locks:
        lists = locks.actors(NAME, put_effect, tries=1000, concurrency=KEYS_COUNT)
        with lists:
            states = {key: _state(lists, key, result) for key in (f"k{number}" for number in range(KEYS_COUNT))}
        if letters := lists.dead_letters():
            result.violations.append(f"there are dead letters: {letters[:3]}")
    for key, effects in states.items():
        result.violations += violations(key, told.get(key, []), effects)


def _state(lists: ActorSystem, key: str, result: EffectsResult) -> list[list[object]]:
    if not wait_until(lambda: (view := lists.look(key)) is None or not view.inbox, DRAIN_S):
        result.violations.append(f"{key} is stuck with messages")
    view = lists.look(key)
    return [] if view is None else view.state or []


def violations(key: str, told: list[str], effects: list[list[object]]) -> list[str]:
    """What must not have happened to one actor."""
    names, found = [str(name) for name, _ in effects], list[str]()
    places = {name: number for number, name in enumerate(names)}
    found += [f"the effect of {name} on {key} was doubled" for name in places if names.count(name) > 1]
    found += [f"the effect of {name} on {key} was lost" for name in told if name not in places]
    order = [name for name in told if name in places]
    for earlier, later in pairwise(order):
        if earlier.rsplit("-", 1)[0] == later.rsplit("-", 1)[0] and places[earlier] > places[later]:
            found.append(f"{later} overtook {earlier} on {key}")
    tokens = [int(str(token)) for _, token in effects]
    if sorted(tokens) != tokens:
        found.append(f"the tokens of {key} went back")
    return found


ACTORS = Workload(
    "actors",
    "holdfast.torture.effects.actor_process",
    ("sqlite", "redis", "postgresql", "mysql", "etcd"),
    judge_actors,
)
