"""Which machine this is, and which start of it: whose times the times in a lock file are.

1. They count from the machine's start, so they mean something to processes of the same start only. The kernel's own
   identity of its start decides; containers of one kernel share it, whatever machine id they have.
2. After another start of the same machine whoever held or waited is gone, and the file may be cleared. Those of another
   machine may well be alive: its file is refused, and so is a file on a network file system, before it is opened.
3. Nothing is rounded, and calendar time tells nothing here. Where the system does not tell its start, only a time in
   the file that lies in the future proves another one: the boot clock never goes back.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ...errors import Misconfigured

BOOT_ID = "/proc/sys/kernel/random/boot_id"
MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
MOUNTS = "/proc/self/mountinfo"
NETWORK = frozenset(
    [
        "afs",
        "beegfs",
        "ceph",
        "ceph-fuse",
        "cifs",
        "coda",
        "davfs",
        "davfs2",
        "gfs2",
        "glusterfs",
        "gpfs",
        "juicefs",
        "lustre",
        "moosefs",
        "ncpfs",
        "nfs",
        "nfs3",
        "nfs4",
        "ocfs2",
        "orangefs",
        "prl_fs",
        "pvfs2",
        "rclone",
        "s3fs",
        "smb2",
        "smb3",
        "smbfs",
        "sshfs",
        "vboxsf",
        "vmhgfs",
        "vmhgfs-fuse",
    ]
)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine and its start; "" where the system does not tell."""

    id: str
    boot: str

    def compared_to(self, owner: Machine, went_back: bool) -> Literal["same", "restarted", "foreign"]:
        """What this machine is to the owner of a file. `went_back`: times in the file lie in the future."""
        if self.boot and self.boot == owner.boot:
            return "same"
        if self.id != owner.id:
            return "foreign"
        return "restarted" if self.boot or owner.boot or went_back else "same"


def this_machine() -> Machine:
    if sys.platform == "darwin":
        return Machine(_host_uuid(), _sysctl("kern.bootsessionuuid"))
    return Machine(next(filter(None, map(_read, MACHINE_IDS)), ""), _read(BOOT_ID))


def _read(path: str) -> str:
    try:
        text = Path(path).read_text("ascii").strip()
    except (OSError, ValueError):
        return ""
    return "" if text == "uninitialized" else text


def _sysctl(name: str) -> str:
    """A text of the kernel's, on macOS and the BSDs."""
    try:
        spec = ctypes.CDLL(None, use_errno=True).sysctlbyname
        size, text = ctypes.c_size_t(256), ctypes.create_string_buffer(256)
        return text.value.decode("ascii") if spec(name.encode(), text, ctypes.byref(size), None, 0) == 0 else ""
    except (OSError, AttributeError, ValueError):
        return ""


def _host_uuid() -> str:
    """The identity of a Mac."""
    try:
        uuid, no_wait = ctypes.create_string_buffer(16), (ctypes.c_long * 2)(0, 0)
        return uuid.raw.hex() if ctypes.CDLL(None).gethostuuid(uuid, no_wait) == 0 else ""
    except (OSError, AttributeError):
        return ""


def refuse_network(path: Path) -> None:
    """Raise `Misconfigured` if a file is not on a disk of this machine."""
    kind = file_system(os.path.realpath(path))
    if kind.removeprefix("fuse.") in NETWORK:
        raise Misconfigured(
            f"{path} is on a network file system ({kind}), where SQLite's locks cannot be trusted and other machines "
            "have other clocks; use a file on a local disk, or for several machines a server (redis://, …)"
        )


def file_system(path: str) -> str:
    """The kind of file system that a path (without symbolic links) is on; "" if nobody tells."""
    best, kind = "", ""
    for line in _read(MOUNTS).splitlines():
        mount, separator, source = line.partition(" - ")
        words = mount.split(" ")
        if not separator or len(words) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount hides an earlier one at the same point
            best, kind = point, source.split(" ")[0]
    return kind
