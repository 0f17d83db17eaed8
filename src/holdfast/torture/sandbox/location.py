"""Where servers run: on the loopback interface, or in a network namespace of their own.

A namespace has one veth pair and private addresses; iptables inside it drops packets for a partition, as a switch
would: neither side is told. Needs root.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from typing import Any

from .environment import environment
from .sandbox import NotAvailable, Sandbox, is_root

_given: set[str] = set()
_mutex = threading.Lock()


@dataclass(slots=True)
class Location:
    """The address that servers bind to, and the arguments before their command."""

    host: str = "127.0.0.1"
    gateway: str = "127.0.0.1"
    """The address outside, as servers see it."""
    prefix_argv: list[str] = field(default_factory=list)
    namespace: str = ""

    def drop(self, port: int, on: bool) -> None:
        """A partition between this port and the world outside its namespace."""
        for end in ("--dport", "--sport"):
            chain = "INPUT" if end == "--dport" else "OUTPUT"
            _run(*self.prefix_argv, "iptables", "-A" if on else "-D", chain, "-p", "tcp", end, str(port), "-j", "DROP")

    def argv_prefix(self, user: str | None) -> list[str]:
        """In a namespace the user is changed after entering, because entering needs root."""
        if not self.prefix_argv or user is None:
            return self.prefix_argv
        return [*self.prefix_argv, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]

    def identity(self, user: str | None) -> dict[str, Any]:
        """Outside, the user is changed at the start of the process."""
        return {} if self.prefix_argv or user is None else {"user": user, "group": user, "extra_groups": []}


def namespace(sandbox: Sandbox) -> Location:
    """Make a network namespace for this sandbox."""
    reason = why_not()
    if reason:
        raise NotAvailable(reason)
    name = f"hf-{sandbox.folder.name[-8:]}"
    block = _free_block()
    near = f"v{sandbox.folder.name[-8:]}"
    _run("ip", "netns", "add", name)
    sandbox.enter("netns", name)
    _run("ip", "link", "add", near, "type", "veth", "peer", "name", "eth0", "netns", name)
    _run("ip", "addr", "add", f"{block}.1/24", "dev", near)
    _run("ip", "link", "set", near, "up")
    inside = ["ip", "netns", "exec", name]
    _run(*inside, "ip", "addr", "add", f"{block}.2/24", "dev", "eth0")
    _run(*inside, "ip", "link", "set", "eth0", "up")
    _run(*inside, "ip", "link", "set", "lo", "up")
    return Location(f"{block}.2", f"{block}.1", inside, name)


def _free_block() -> str:
    """The beginning of 256 private addresses that no interface here has, and that was not given out before."""
    taken = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True, env=environment()).stdout
    with _mutex:
        for number in range(os.getpid() * 8 % 12000, 12500):
            block = f"10.{200 + number // 250}.{number % 250}"
            if block not in _given and f" {block}." not in taken:
                _given.add(block)
                return block
    raise NotAvailable("no private addresses are free")


def why_not() -> str:
    """Why this machine cannot make a namespace; empty if it can."""
    if not is_root():
        return "network namespaces need root"
    missing = [program for program in ("ip", "iptables", "setpriv") if shutil.which(program) is None]
    return f"{', '.join(missing)}: not installed" if missing else ""


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, text=True, env=environment())
    except subprocess.CalledProcessError as error:
        raise NotAvailable(f"{' '.join(words)}: {error.stderr.strip()}") from error
