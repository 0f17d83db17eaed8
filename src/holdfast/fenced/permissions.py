"""Who may open a new file: those who could open the one it replaces, or stands beside.

Only root may give files away. Where the group cannot be kept, the new group gets what all others have.
"""

from __future__ import annotations

import os


def inherit(old: os.stat_result, descriptor: int) -> None:
    """Give an open file the permissions and, where the system allows, the owner of another."""
    mode = old.st_mode & 0o777
    for owner in (old.st_uid, -1):  # only root may give files away, but a group of one's own may be kept
        try:
            os.fchown(descriptor, owner, old.st_gid)
            break
        except PermissionError:
            pass
    else:
        mode = mode & 0o707 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)
