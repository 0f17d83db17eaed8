"""What the commands share: URLs that can be shown, durations that can be read."""

from __future__ import annotations

import pytest

from holdfast.cli.options import SECONDS
from holdfast.cli.runner.request import RunRequest, allowance, default_grace, least_ttl
from holdfast.cli.views import seconds
from holdfast.errors import Misconfigured
from holdfast.settings import without_passwords


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://app:secret@db1:6379/0", "redis://app:…@db1:6379/0"),
        ("redis://:secret@db1", "redis://:…@db1"),
        ("redlock://a:one@h1,b:two@h2:6379", "redlock://a:…@h1,b:…@h2:6379"),
        ("sqlite:///home/a:b@c.db", "sqlite:///home/a:b@c.db"),
        ("etcd://h1:2379,h2:2379", "etcd://h1:2379,h2:2379"),
        ("redis://:a/b@db1", "redis://:…@db1"),
        ("redis://db1?password=secret&db=1", "redis://db1?password=…&db=1"),
        ("redis+sentinel://h1/m?db=1&sentinel_password=secret", "redis+sentinel://h1/m?db=1&sentinel_password=…"),
        ("postgresql://app@h1/db?sslpassword=secret", "postgresql://app@h1/db?sslpassword=…"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert without_passwords(url) == shown


@pytest.mark.parametrize(
    ("text", "value"), [("30", 30.0), ("1.5", 1.5), ("500ms", 0.5), ("90s", 90.0), ("5m", 300.0), ("2h", 7200.0)]
)
def test_a_duration_has_a_unit_or_is_seconds(text: str, value: float) -> None:
    assert SECONDS.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0.0 s"), (9.94, "9.9 s"), (12.7, "12 s"), (200.0, "3 m 20 s"), (7500.0, "2 h 5 m")]
)
def test_a_remaining_time_is_short(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize("ttl", [0.1, 1.0, 2.0, 10.0, 30.0, 3600.0])
def test_the_default_grace_suits_every_ttl(ttl: float) -> None:
    request = RunRequest("job", ("true",), "memory://", ttl=ttl, grace=default_grace(ttl))
    assert request.margin == request.grace + allowance(ttl)
    assert request.ttl > 2 * request.margin


@pytest.mark.parametrize("grace", [0.0, 0.01, 0.5, 3.0, 5.0, 77.7, 3600.0])
def test_the_least_ttl_is_enough_and_not_much_more(grace: float) -> None:
    ttl = least_ttl(grace)
    assert RunRequest("job", ("true",), "memory://", ttl=ttl, grace=grace).ttl == ttl
    if grace:
        with pytest.raises(Misconfigured, match=f"use --ttl {ttl:g} or more"):
            RunRequest("job", ("true",), "memory://", ttl=2 * grace, grace=grace)
