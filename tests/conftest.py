"""What all tests share: how hard hypothesis looks.

The default profile gives the same verdict on every machine and every run. To look for what it does not find, run
`HYPOTHESIS_PROFILE=explore pytest tests/unit`: other examples each time, and twenty times as many.
"""

from __future__ import annotations

import os

from hypothesis import Phase, settings

PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)  # no "explain", which takes longest
settings.register_profile("same", derandomize=True, phases=PHASES, deadline=None, print_blob=True)
settings.register_profile("explore", phases=PHASES, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
