"""The doctor: what in an engine's settings, or in this process, breaks locks; and by experiment, which ttl fits.

1. A *check* looks at one thing and returns a `CheckResult`. Its id, title, reason and remedy are in `catalogue.toml`,
   so that the command, its JSON and docs/doctor.md say the same. An id is never renamed or used again.
2. Four outcomes (`Outcome`): fine, warning (locks break in a fault), failed (locks break in use), unknown (could not
   look). A check that raises could not look: one that cannot answer never counts as fine.
3. Looking changes nothing. Only experiments write, on names of their own, bounded in count and time, and only when the
   caller asks for them.
4. What is shown holds no secret: neither the password of a URL nor one of a server's settings.

`examine` runs all checks for a URL; `Report` is their sum. The rooms: `checks/` has one module per engine, each with a
class that reads from the server when it is first asked and keeps what it has read.
"""

from __future__ import annotations

from .examine import examine
from .finding import HealthFinding, Outcome
from .report import Report

__all__ = ["HealthFinding", "Outcome", "Report", "examine"]
