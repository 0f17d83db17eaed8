"""A run: an engine, clients in three disciplines, faults by a seed, and the verdicts."""

from .controller import torture
from .plan import Plan
from .result import RunResult

__all__ = ["Plan", "RunResult", "torture"]
