"""This process: what it runs on, and what a program with locks will run into."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from ..examination import Examination
from ..finding import CheckResult, check, failed, fine, warning

FEW_FILES_COUNT = 1024
"""The usual limit of a login shell. A pool and its waiters take up to 200; the program wants some, too."""
LEAST_FILES_COUNT = 256
CLOCK_SOURCES = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen", "timebase", "stp")


@dataclass(frozen=True, slots=True)
class ThisProcess:
    """This process, and which engine it is to use."""

    scheme: str
    clock_file: Path = CLOCK_SOURCES


def examination(url: str) -> Examination:
    return Examination(
        ThisProcess(url.partition("://")[0]), (python, open_files, clock_source, reader, event_loop), "here"
    )


@check("client.python")
def python(_: ThisProcess) -> CheckResult:
    version = platform.python_version()
    if sys.flags.optimize:
        return warning(f"Python {version} runs with -O, which removes assertions of this library and of yours")
    return fine(f"{platform.python_implementation()} {version}")


@check("client.open-files")
def open_files(_: ThisProcess) -> CheckResult | None:
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    used = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    seen = f"at most {'any number of' if soft == resource.RLIM_INFINITY else soft} files and sockets may be open"
    if soft == resource.RLIM_INFINITY or soft - used >= FEW_FILES_COUNT // 2:
        return fine(seen)
    if soft - used < LEAST_FILES_COUNT:
        return failed(f"{seen}, and {used} are")
    return warning(f"{seen}, and {used} are")


@check("client.clock-source")
def clock_source(subject: ThisProcess) -> CheckResult | None:
    if not subject.clock_file.exists():
        return None
    source = subject.clock_file.read_text().strip()
    if source in GOOD_CLOCKS:
        return fine(f"the clock source is {source}")
    return warning(f"the clock source is {source}, which takes a call into the kernel or a device for each reading")


@check("client.hiredis")
def reader(subject: ThisProcess) -> CheckResult | None:
    if "redis" not in subject.scheme and subject.scheme not in ("unix", "redlock"):
        return None
    if importlib.util.find_spec("hiredis") is not None:
        return fine("hiredis is installed")
    return warning("hiredis is not installed, so replies are read by Python code")


@check("client.event-loop")
def event_loop(_: ThisProcess) -> CheckResult:
    import asyncio

    policy = type(asyncio.DefaultEventLoopPolicy() if sys.version_info >= (3, 14) else asyncio.get_event_loop_policy())
    if os.environ.get("PYTHONASYNCIODEBUG"):
        return warning("PYTHONASYNCIODEBUG is set: every callback of asyncio is timed and kept with its traceback")
    return fine(f"asyncio uses {policy.__module__.partition('.')[0]}")
