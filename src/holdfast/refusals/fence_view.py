"""What one fence shows. Whatever the engine, a fence that cannot be read is `BackendUnavailable`."""

from __future__ import annotations

from importlib import import_module

from ..backends import SCHEMES
from ..errors import BackendUnavailable, HoldfastError, Misconfigured
from ..fenced.refusal import RefusalRecord
from ..settings import without_passwords
from . import file

FENCED = ("etcd", "mysql", "postgresql", "redis", "sqlite", "zookeeper")
"""The engines that fences stand in front of."""
REQUEST_TIMEOUT_S = 5.0


def kind_of(fence: str) -> str:
    """The kind of fence that a URL or a path names; `Misconfigured` if there is none."""
    scheme, separator, _ = fence.partition("://")
    if not separator:
        return "file"
    kind = SCHEMES[scheme].split(".")[2] if scheme in SCHEMES else ""
    if kind not in FENCED:
        raise Misconfigured(
            f"no fence stands in front of {without_passwords(fence)!r}; name what is fenced: the URL of a Redis, etcd, "
            "ZooKeeper, PostgreSQL, MariaDB or SQLite database (sqlite:///path), or the path of a file or a folder"
        )
    return kind


def read_refusals(fence: str, prefix: str = "", request_timeout: float = REQUEST_TIMEOUT_S) -> list[RefusalRecord]:
    """What a fence has kept, of resources that begin with `prefix`, in their order."""
    kind = kind_of(fence)
    try:
        if kind == "file":
            found = file.read(fence)
        else:
            found = import_module(f"{__package__}.{kind}").read(fence, request_timeout)
    except HoldfastError:
        raise
    except Exception as error:
        raise BackendUnavailable(
            f"the refusals at {without_passwords(fence)} cannot be read: {str(error) or type(error).__name__}"
        ) from error
    return sorted((each for each in found if each.resource.startswith(prefix)), key=lambda each: each.resource)
