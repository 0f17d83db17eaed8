"""The report of a run: a page for people, lines for programs, a table for the terminal.

1. The page is one file and asks nothing of the network; it can be mailed.
2. It shows every operation, and leads from each violation to the operations around it.
3. Beside it lie the verdicts as JSON, and each history as JSON lines (`history`), for other checkers.
"""

from .page import write_report
from .table import verdict_table

__all__ = ["verdict_table", "write_report"]
