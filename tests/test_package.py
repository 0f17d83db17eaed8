"""The package as others get it.

1. The wheel holds what users run, listed by room: a stray file, or a folder that nobody has listed, fails.
   The simulator, the planted bugs, the benchmark and the tests are not in it.
2. All of it imports without any dependency, except for the command line and the console's web server, which need what
   their extras declare.
3. The source distribution has all that its own tests need, and the wheel is built from it.
4. Its page on an index leads nowhere it should not.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.distribution import build_sdist, build_wheel, install, unpack
from tests.test_rooms import room_of

MODULES = frozenset(
    {"__init__.py", "__main__.py", "base_lease.py", "clock.py", "engine.py", "errors.py", "flow.py", "record.py"}
    | {"model.py", "ports.py", "py.typed", "registry.py", "settings.py", "signals.py"}
)
FOLDERS = {
    "_core": "py",
    "aio": "py",
    "backends": "py lua sql",
    "cli": "py toml",
    "cas": "py lua",
    "fenced": "py lua sql",
    "log": "py lua sql",
    "observe": "py yml",
    "recipes": "py",
    "sql": "py sql",
    "sync": "py",
    "testing": "py",
    "doctor": "py toml",
    "refusals": "py",
    "console": "py html css js svg",
    "torture": "py sql html css js",
}
"""Each folder of the package, and the kinds of files in it."""
METADATA = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"}


def complaints(names: list[str]) -> list[str]:
    """All that a wheel with these files has too much, or lacks."""
    wrong, package, metadata = [], set(), set()
    for name in names:
        top, _, path = name.partition("/")
        if top == "holdfast":
            package.add(path)
        elif re.fullmatch(r"holdfast-[^/]+\.dist-info", top):
            metadata.add(path)
        else:
            wrong.append(f"{name}: stands outside of the package")
    for path in sorted(package):
        folder, inside, _ = path.partition("/")
        if inside and Path(path).suffix[1:] not in FOLDERS.get(folder, "").split():
            wrong.append(f"{path}: is not listed; if users run it, list it in tests/test_package.py")
        if path.endswith(".py") and room_of(path) is None:
            wrong.append(f"{path}: belongs to no room")
    present = {path for path in package if "/" not in path}
    wrong += [f"{path}: is too much or missing" for path in sorted(present ^ MODULES)]
    wrong += [f"{folder}: is missing" for folder in FOLDERS if not any(p.startswith(f"{folder}/") for p in package)]
    wrong += [f"dist-info/{path}: is too much or missing" for path in sorted(metadata ^ METADATA)]
    return wrong


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, built from this tree and unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    return unpack(build_sdist(folder), folder)


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"), unpacked)


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def run(python: Path, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run an installed holdfast far from the tree, with warnings as errors."""
    command = [str(python), "-I", "-W", "error", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)


def test_the_wheel_holds_what_users_run(names: list[str]) -> None:
    assert complaints(names) == []


@pytest.mark.parametrize(
    ("stray", "expected"),
    [
        ("holdfast_sim/__init__.py", "outside of the package"),
        ("bench/run.py", "outside of the package"),
        ("holdfast/sim/driver.py", "is not listed"),
        ("holdfast/notes.txt", "too much or missing"),
        ("holdfast/attic.py", "too much or missing"),
        ("holdfast/_core/flow.py.orig", "is not listed"),
        ("holdfast/backends/redis/scratch.txt", "is not listed"),
        ("holdfast-0.1.0.dist-info/licenses/OTHER", "too much or missing"),
    ],
)
def test_a_stray_file_is_found(names: list[str], stray: str, expected: str) -> None:
    found = complaints([*names, stray])
    assert found
    assert all(expected in line or "no room" in line for line in found)


def test_what_is_missing_is_found(names: list[str]) -> None:
    assert complaints([name for name in names if name != "holdfast/py.typed"]) == ["py.typed: is too much or missing"]
    without = [name for name in names if not name.startswith("holdfast/torture/")]
    assert complaints(without) == ["torture: is missing"]


WEB = tuple(f"holdfast.console.{name}" for name in ("api", "guard", "refusal", "server"))
"""What stands on starlette and uvicorn, of the extra `console`."""
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
assert "site-packages" in sys.modules["holdfast"].__file__
"""


def modules(names: list[str]) -> list[str]:
    """Every module of the package; `__main__` is a program."""
    files = [name for name in names if name.startswith("holdfast/") and name.endswith(".py")]
    found = [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files]
    return [name for name in found if not name.endswith("__main__")]


def test_all_but_the_command_line_imports_with_no_dependency(wheel: Path, names: list[str], tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "empty")
    some = [name for name in modules(names) if not name.startswith(("holdfast.cli.", *WEB))]
    assert {"holdfast.testing", "holdfast.torture.run", "holdfast.cli", "holdfast.backends.redis"} <= set(some)
    done = run(python, "-c", IMPORT_ALL, *some, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run(python, "-m", "holdfast", "--version", folder=tmp_path)
    assert "pip install 'holdfast[cli]'" in done.stderr
    assert done.returncode != 0


def test_with_its_extras_the_command_line_is_complete(wheel: Path, names: list[str], tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "empty", ["cli", "console"])
    done = run(python, "-c", IMPORT_ALL, *modules(names), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in (["--version"], ["torture", "--help"], ["torture", "--list"], ["schema", "--help"]):
        done = run(python, "-m", "holdfast", *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        script = subprocess.run([python.parent / "holdfast", *words], capture_output=True, text=True, check=True)
        assert script.stdout == done.stdout.replace("python -m holdfast", "holdfast")


def test_the_contract_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "empty")
    program = (
        "from holdfast.testing import contract_promises, memory_engine_under_test, run_promise\n"
        "for promise in contract_promises():\n"
        "    if promise.name.startswith('mutual_exclusion.'):\n"
        "        for body in ('sync', 'asyncio'):\n"
        "            run_promise(promise, memory_engine_under_test(), body)\n"
        "            print(promise.name, body)"
    )
    done = run(python, "-c", program, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 4


def test_type_checkers_read_it(wheel: Path, tmp_path: Path) -> None:
    python = install(wheel, tmp_path / "empty")
    (tmp_path / "user.py").write_text("import holdfast\nreveal_type(holdfast.connect().lock('a').acquire().token)\n")
    words = ["-m", "mypy", "--strict", "--python-executable", str(python), "--cache-dir", str(tmp_path), "user.py"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert 'Revealed type is "int"' in done.stdout or 'Revealed type is "builtins.int"' in done.stdout, done.stdout


def test_its_tests_collect(unpacked: Path) -> None:
    """In a folder that has nothing but what was packed, with the package that was packed."""
    words = ["-m", "pytest", "-qq", "-p", "no:cacheprovider", "-n", "0", "--collect-only", "tests"]
    environment = os.environ | {"PYTHONPATH": str(unpacked / "src")}
    done = subprocess.run(
        [sys.executable, *words], cwd=unpacked, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout[done.stdout.find("= ERRORS") :] + done.stderr


def test_everything_that_a_test_reads_is_packed(unpacked: Path) -> None:
    """All of the tree that git knows, since tests read its pages, tools, programs and settings."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        pytest.skip("this is not a checkout, so nobody can say what belongs to it")
    done = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True, timeout=30)
    assert [
        name for name in done.stdout.splitlines() if not (unpacked / name).exists() and (root / name).exists()
    ] == []


def test_the_page_of_an_index_has_no_dead_links(unpacked: Path) -> None:
    page = email.message_from_string((unpacked / "PKG-INFO").read_text(encoding="utf-8"))
    text = page.get_payload()
    assert isinstance(text, str)
    assert "A first lock" in text
    assert re.findall(r"\]\((?!https?://)[^)]*\)", text) == []
    assert page["Description-Content-Type"] == "text/markdown"
