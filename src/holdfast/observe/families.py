"""Families: names are counted by family, so that a million orders are one line of a board, and not a million.

1. A name that was made from a template (`holdfast.Name`) has the template as its family. That of any other name is what
   the function given to `connect(…, family=…)` says; without one, `default_family`.
2. The number of families is bounded: what comes beyond `MAX_FAMILIES_COUNT` is counted as `OTHER`.
3. A function that raises, or answers with anything but a short text, harms nothing: its names are counted as `OTHER`.
"""

from __future__ import annotations

from collections.abc import Callable

from .log_exception import log_exception

FamilyFunction = Callable[[str], str]

OTHER = "other"
MAX_FAMILIES_COUNT = 100
MAX_FAMILY_BYTES = 200
_ID = r"(?<![^/:])(?:\d+|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|(?=[a-fA-F]*\d)[0-9a-fA-F]{8,})(?![^/:])"
"""A whole segment between `/` or `:` that is a number, a UUID, or at least 8 hexadecimal digits with a digit in it."""


def default_family(name: str) -> str:
    """The name with `*` for each segment that looks like an id: a number, a UUID, a long hexadecimal number.

    >>> default_family("orders/7/lines"), default_family("user:52eb0a60-1c7f-4a7a-9d0c-0a7f6d5f2b11")
    ('orders/*/lines', 'user:*')
    """
    import re  # a name without an id is the usual one at start-up, and needs no pattern

    return re.sub(_ID, "*", name)


def family_of(name: str, function: FamilyFunction) -> str:
    """What the function says, within the bounds (rule 3)."""
    try:
        family = function(name)
    except Exception:  # noqa: BLE001  it is not our code
        log_exception("the function that tells families raised at %r; it is counted as %r", name, OTHER)
        return OTHER
    if not isinstance(family, str) or not 0 < len(family) <= MAX_FAMILY_BYTES or not family.isprintable():
        return OTHER
    return family
