"""Objects that belong to a connection, a thread or a process refuse to be pickled."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..errors import Misconfigured


def unpicklable(instead: str) -> Callable[[object], NoReturn]:
    """A `__reduce__` that refuses: a copy in another process would protect nothing there."""

    def __reduce__(self: object) -> NoReturn:  # noqa: N807  it becomes that method
        raise Misconfigured(
            f"a {type(self).__qualname__} cannot be pickled or copied: it belongs to its process and connection; "
            f"{instead}"
        )

    return __reduce__
