"""What happened, as data, and where it goes."""

from .event import Event

__all__ = ["Event"]
