"""The trace of `holdfast run --trace`, whose spans are children of what the environment names.

Whoever starts `holdfast` says where spans go: by `opentelemetry-instrument`, or a `sitecustomize` that sets the global
provider. Without either nothing is recorded, and the context of the environment is passed on as it is.
"""

from __future__ import annotations

import os

from ... import Lease
from ...errors import Misconfigured

FLUSH_TIMEOUT_S = 1.5
"""A collector that is out of reach delays the end of the command by no more than this. The wrapper waits longer."""


def check_tracing() -> None:
    """Raise `Misconfigured` if opentelemetry-api is not installed."""
    try:
        import opentelemetry.trace  # noqa: F401  the question is whether it can be
    except ImportError as error:
        raise Misconfigured("--trace needs opentelemetry-api; pip install 'holdfast[opentelemetry]'") from error


class HoldTrace:
    """Switches tracing on in the process of the holder, which makes no other spans."""

    def __init__(self) -> None:
        from opentelemetry.context import attach

        from ...observe import opentelemetry

        self._exporter = opentelemetry
        opentelemetry.trace()
        attach(opentelemetry.context_from(os.environ))

    def environment_of(self, lease: Lease) -> dict[str, str]:
        """What the command finds in its environment."""
        return self._exporter.environment_of(lease)

    def flush(self) -> None:
        """This process ends without the clean-up of Python, so nobody else exports what is left."""
        self._exporter.flush(FLUSH_TIMEOUT_S)
