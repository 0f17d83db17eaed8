"""Reads what fences have kept of their refusals (`holdfast.fenced.refusal`), for the command and the exporter.

A fence is named by the URL of what it stands in front of, or by the path of a file or a folder. Each engine's module
has `read(url, request_timeout)`; nothing is written, and nothing is created.
"""

from __future__ import annotations

from .fence_view import read_refusals

__all__ = ["read_refusals"]
