"""`python -m holdfast.cli` is `holdfast`."""

from __future__ import annotations

from . import main

main()
