"""The process of `holdfast.torture.effects.actor_process` with a planted bug: nobody looks at the mark of an actor."""

from __future__ import annotations

from holdfast.recipes import actor_worker
from holdfast.torture.effects.actor_process import main

if __name__ == "__main__":
    actor_worker._check_mark = lambda *given: None
    main()
