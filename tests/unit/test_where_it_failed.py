"""What cannot be reached, or read, is named in the message."""

from __future__ import annotations

import pytest

import holdfast


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://[::1]:1", "[::1]:1"),
        ("mysql://user@[::1]:1/database", "[::1]:1"),
        ("mysql://user@127.0.0.1:1/database", "127.0.0.1:1"),
        ("rediss://127.0.0.1:1?ssl_ca_certs=/none/ca.pem", "/none/ca.pem"),
        ("mysql://user@127.0.0.1:1/database?ssl_ca=/none/ca.pem", "ssl_ca"),
        ("etcds://127.0.0.1:1?ca=/none/ca.pem", "/none/ca.pem"),
    ],
)
def test_the_place_or_the_file_is_named(url: str, said: str) -> None:
    with pytest.raises(holdfast.HoldfastError) as told:
        holdfast.connect(url, request_timeout=5.0)
    assert said in str(told.value)
