"""What counting costs, where a pair is cheapest."""

from __future__ import annotations

from bench.measures.metered import figures as figures

CONTENDERS = ()
