"""A URL as it may be shown: without its secrets."""

from __future__ import annotations

import re

SECRET = re.compile(r"([?&][^=&]*(?:passw|pwd|secret|token|scram_\w+_key)[^=&]*=)[^&]*", re.IGNORECASE)


def shown(url: str) -> str:
    """If a password has characters that should have been escaped, rather too much is left out."""
    head, mark, options = SECRET.sub(r"\1***", url).partition("?")
    if "@" in options and "@" not in head:
        head, mark, options = head + mark + options, "", ""
    return re.sub(r"(://[^/@:]*):.*@", r"\1:***@", head) + mark + options
