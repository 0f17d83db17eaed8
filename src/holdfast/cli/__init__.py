"""The command line: `holdfast run`, `ls`, `watch`, `evict`, `schema`, `advise`, `demo`.

Needs the extra `cli`. Nothing third-party is imported before `main` is called, and rich only by what draws with it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from .exit_codes import INCOMPLETE


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The console script. Ends the process with one of the codes in `exit_codes`."""
    try:
        from .app import invoke

        code = invoke(sys.argv[1:] if arguments is None else arguments)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in ("click", "rich"):
            raise
        print(f"holdfast: the command line needs {missing}: pip install 'holdfast[cli]'", file=sys.stderr)
        code = INCOMPLETE
    sys.exit(code)
