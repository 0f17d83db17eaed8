"""The environment for a new process, as a copy.

Without one, `exec` reads the environment of this process in the middle of the fork, and any thread that sets a variable
at that moment (a test runner does, for each test) makes it fail with "Bad address".
"""

from __future__ import annotations

import os


def environment() -> dict[str, str]:
    while True:
        try:
            return dict(os.environ)
        except (KeyError, RuntimeError):  # changed while we read
            continue
