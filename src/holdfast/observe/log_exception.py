"""Complaints: what goes wrong in code that is not ours, and must not disturb what is. To the logger "holdfast"."""

from __future__ import annotations


def log_exception(message: str, *args: object) -> None:
    """Log the exception being handled."""
    import logging  # not at the top: `import holdfast` stays light

    logging.getLogger("holdfast").error(message, *args, exc_info=True)  # noqa: LOG014  its caller handles one


def error_text(error: BaseException) -> str:
    """Its kind and what it says; an exception of a user may not even be able to say that."""
    kind = type(error).__name__
    try:
        return f"{kind}: {error}"
    except Exception:  # noqa: BLE001  not our code
        return kind
