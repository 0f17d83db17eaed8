"""Complaints: what goes wrong in code that is not ours, and must not disturb what is. To the logger "holdfast"."""

from __future__ import annotations


def log_exception(message: str, *args: object) -> None:
    """Log the exception being handled."""
    import logging  # not at the top: `import holdfast` stays light

    logging.getLogger("holdfast").error(message, *args, exc_info=True)  # noqa: LOG014  its caller handles one
