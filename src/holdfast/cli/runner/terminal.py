"""The terminal's foreground: the command's, while it runs, as a shell would have it.

1. If stdin and stdout are the terminal and we are in its foreground, the command's group gets it before the command
   starts. Then Ctrl-C and Ctrl-Z reach the command directly, and editors, pagers and shells work under a lock.
2. Otherwise (in a pipe, or with redirected output) it stays where it is until the command asks for it: the kernel
   stops a background reader with SIGTTIN, and that is the moment to hand it over.
3. Only what was handed over is taken back.
"""

from __future__ import annotations

import os


class Terminal:
    """The controlling terminal of this process, if there is one."""

    def __init__(self) -> None:
        self._given = False
        try:
            self._tty = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            self._tty = -1

    @property
    def exists(self) -> bool:
        return self._tty >= 0

    @property
    def ours(self) -> bool:
        """Whether our own process group is in the foreground."""
        try:
            return self.exists and os.tcgetpgrp(self._tty) == os.getpgrp()
        except OSError:  # hung up
            return False

    @property
    def wanted_at_start(self) -> bool:
        return self.ours and os.isatty(0) and os.isatty(1)

    def give(self, group: int) -> bool:
        """Hand it to the command, if it is ours to give."""
        if not self.ours:
            return False
        self._set(group)
        self._given = True
        return True

    def claim_in_child(self) -> None:
        """Between fork and exec: the command's group takes it, before the command can read from it."""
        self._set(os.getpgrp())

    def note_given(self) -> None:
        self._given = True

    def take_back(self) -> None:
        if self._given:
            self._given = False
            self._set(os.getpgrp())

    def _set(self, group: int) -> None:
        try:
            os.tcsetpgrp(self._tty, group)
        except OSError:  # hung up, or the group has just ended: nothing to hand over
            pass
