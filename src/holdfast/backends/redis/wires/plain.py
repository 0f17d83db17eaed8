"""Plain commands of Redis, which are no programs of ours: for opening and for surveys."""

from __future__ import annotations

from typing import Any

from .... import clock
from ....errors import BackendUnavailable
from ..resp import Error
from ..trouble import translated
from .links import Links
from .servers import Servers
from .timing import left, no_answer


def plainly(servers: Servers, links: Links, frame: bytes, timeout: float) -> Any:
    """A plain command to one server, of a kind that may be repeated."""
    end = clock.now() + timeout
    try:
        link = links.get(timeout)
    except BackendUnavailable:
        servers.failed(links)
        raise
    for again in (False, True):
        try:
            reply = link.exchange(frame, left(end))
            break
        except BaseException as error:
            links.drop(link)
            if isinstance(error, ConnectionError) and not again:
                links.drop_idle()
                link = links.get(left(end))
                continue
            if isinstance(error, OSError):
                servers.failed(links)
                raise no_answer(timeout, error) from error
            raise
    links.put(link)
    if reply.__class__ is Error:
        raise translated(reply)
    return reply
