"""The workflow files of a public forge do what they say, as far as one can tell without a forge.

1. Every `make` target that they call exists. They call nothing else: what runs there, runs on any machine.
2. Every action is pinned to a commit, with its version beside it.
3. A job may read, and no more; only the one that publishes gets an identity, and it waits for an approved environment.
4. Every Python that is claimed is tested; one that is not claimed may fail. Every job has an end.
5. Hooks of pre-commit call the tools that `make check` calls, from the environment that it makes.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.torture.engines import STARTERS

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
TARGETS = set(re.findall(r"^([a-z]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def load(file: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(file.read_text())
    return data


def workflow(name: str) -> dict[str, Any]:
    return load(ROOT / ".github" / "workflows" / f"{name}.yml")


def unknown_commands(workflow: dict[str, Any]) -> list[str]:
    """The commands that are not `make` with targets that exist (rule 1)."""
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    assert runs or all("uses" in step for job in workflow["jobs"].values() for step in job["steps"])
    wrong = []
    for line in (line for run in runs for line in run.splitlines()):
        program, *words = line.split("ARGS=")[0].split()
        targets = [word for word in words if "=" not in word]
        if program != "make" or not targets or not set(targets) <= TARGETS:
            wrong.append(line)
    return wrong


def test_there_are_workflows() -> None:
    assert [file.stem for file in FILES] == ["release", "tests", "weekly"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_command_is_a_target_of_make(file: Path) -> None:
    assert unknown_commands(load(file)) == []


@pytest.mark.parametrize("command", ["make nothing", "make", "pip install holdfast", "make test nothing"])
def test_another_command_is_found(command: str) -> None:
    assert unknown_commands({"jobs": {"a": {"steps": [{"run": f"make test\n{command}"}]}}}) == [command]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_action_is_pinned(file: Path) -> None:
    lines = [line.strip().removeprefix("- ") for line in file.read_text().splitlines() if "uses:" in line]
    assert lines
    assert [line for line in lines if not ACTION.fullmatch(line)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_jobs_may_read_only_and_end(file: Path) -> None:
    data = load(file)
    assert data["permissions"] == {"contents": "read"}
    for name, job in data["jobs"].items():
        assert job["timeout-minutes"] <= 180, name
        if "permissions" in job:
            assert job["permissions"] == {"id-token": "write"}, name
            assert job["environment"] == "pypi", name
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, name


def test_what_is_published_was_built_and_checked() -> None:
    jobs = workflow("release")["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert not any("run" in step for step in jobs["publish"]["steps"])
    assert "password" not in (ROOT / ".github/workflows/release.yml").read_text()


def test_every_python_that_is_claimed_is_tested() -> None:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    claimed = {line.rpartition(" ")[2] for line in classifiers if re.fullmatch(r".*Python :: 3\.\d+", line)}
    matrix = workflow("tests")["jobs"]["test"]["strategy"]["matrix"]
    assert set(matrix["python"]) == claimed
    assert all(entry["experimental"] for entry in matrix["include"])
    assert claimed | {entry["python"] for entry in matrix["include"]} == {"3.11", "3.12", "3.13", "3.14"}


def test_every_engine_is_tortured() -> None:
    assert workflow("weekly")["jobs"]["torture"]["strategy"]["matrix"]["engine"] == list(STARTERS)


def test_hooks_call_the_tools_of_make_check() -> None:
    (repo,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repo["repo"] == "local"
    assert [hook["id"] for hook in repo["hooks"]] == ["ruff", "ruff-format", "unasync", "mypy"]
    check = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    for hook in repo["hooks"]:
        assert hook["language"] == "system"
        program, word, *_ = hook["entry"].split()
        assert f"$(bin)/{program.removeprefix('.venv/bin/')} {word}" in check
