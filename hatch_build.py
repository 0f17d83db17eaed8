"""What the package says of itself on an index page, made from README.md when it is built.

Links of the README lead to other files of the repository, and on an index page they lead nowhere. With a home (the
address of the public repository, `home` in pyproject.toml) they are made absolute; without one their text stays.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]+)\]\((?!https?://|#)([^)]+)\)")


class Metadata(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        home = self.config.get("home", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        target = rf"[\1]({home}/blob/main/\2)" if home else r"\1"
        metadata["readme"] = {"content-type": "text/markdown", "text": LINK.sub(target, text)}
        if home:
            metadata["urls"] = {
                "Homepage": home,
                "Documentation": f"{home}/tree/main/docs",
                "Changelog": f"{home}/blob/main/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
