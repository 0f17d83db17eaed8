"""Error messages for the shell: they name options and commands where the library's name parameters and methods."""

from __future__ import annotations

from ..errors import DeadlockDetected, HoldfastError, LeaseLost, NotAcquired


def error_message(error: HoldfastError) -> str:
    """What happened, to which name, and what to do about it in a shell."""
    match error:
        case NotAcquired(name=name, waited=waited, ahead=ahead):
            line = "" if not ahead else f", {ahead} claim{'' if ahead == 1 else 's'} ahead of it"
            return (
                f"{name!r} was not acquired within {waited:.3g} s{line}; wait longer (--timeout), "
                f"or see who holds it with 'holdfast ls {name}'"
            )
        case DeadlockDetected(name=name, circle=circle):
            return f"waiting for {name!r} would never end: {'; '.join(circle)}. Take the locks always in the same order"
        case LeaseLost(name=name, token=token, reason="max_hold"):
            return f"the lease on {name!r} (token {token}) was lost: it was held for --max-hold; stop the work"
        case _:
            return str(error)
