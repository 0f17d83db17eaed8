"""The distributions as users get them: built here, or those that `make release` has built (`HOLDFAST_DIST`).

1. The wheel is built from the unpacked source distribution, and not from the tree: what the archive lacks, fails here.
2. An empty environment has the wheel and what the named extras declare, and nothing else. The distributions of an extra
   are linked from this environment, so that no test needs an index.
"""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent.parent


def build_sdist(folder: Path) -> Path:
    """Build the source distribution of this tree, and return the archive."""
    given = os.environ.get("HOLDFAST_DIST")
    return _only(Path(given), "*.tar.gz") if given else _build("sdist", ROOT, folder)


def build_wheel(folder: Path, sdist: Path) -> Path:
    """Build the wheel from an unpacked source distribution (rule 1)."""
    given = os.environ.get("HOLDFAST_DIST")
    return _only(Path(given), "*.whl") if given else _build("wheel", sdist, folder)


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a source distribution, and return its one folder."""
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def install(wheel: Path, folder: Path, extras: Iterable[str] = ()) -> Path:
    """Make an empty environment with the wheel and these extras (rule 2), and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=100)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    command = [*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(command, check=True, timeout=100)
    packages = _only(folder / "lib", "python3*") / "site-packages"
    metadata = importlib.metadata.PathDistribution(_only(packages, "holdfast-*.dist-info"))
    for name in _closure(metadata.requires or (), frozenset(extras)):
        for top in {Path(file).parts[0] for file in importlib.metadata.files(name) or ()} - {".."}:
            if not (packages / top).exists():  # two may name one in two spellings, or share a folder
                (packages / top).symlink_to(Path(str(importlib.metadata.distribution(name).locate_file(top))))
    return python


def _closure(requirements: Iterable[str], extras: frozenset[str]) -> set[str]:
    found: set[str] = set()
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras or {""}):
            inner = importlib.metadata.requires(requirement.name) or ()
            found |= {requirement.name} | _closure(inner, frozenset(requirement.extras))
    return found


def _build(target: str, tree: Path, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, timeout=100)
    return _only(folder, "*.tar.gz" if target == "sdist" else "*.whl")


def _only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found
