"""The program of docs/log.md that needs a Redis server runs as it is, but for its port (`tests/test_readme.py` runs the
others)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.redis_server import RedisServer

PAGE = Path(__file__).parents[2] / "docs" / "log.md"


def test_the_program_of_the_page_runs(redis_server: RedisServer, tmp_path: Path) -> None:
    (program,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert "6379" in program
    redis_server.raw("FLUSHALL")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program.replace("6379", str(redis_server.port))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
