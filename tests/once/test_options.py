"""Options that cannot be are refused when `once` is called: work whose result cannot be kept must not begin."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.recipes.once_record import JsonCodec


@pytest.mark.parametrize("codec", [7, "json", JsonCodec], ids=str)
def test_a_codec_that_is_none_is_refused(codec: object) -> None:
    with (
        holdfast.connect("memory://codecs") as locks,
        pytest.raises(holdfast.Misconfigured, match="codec of 'payments'"),
    ):
        locks.once("payments", keep="1h", takeover="refuse", codec=codec)  # type: ignore[arg-type]


def test_a_key_to_go_on_behind_is_checked() -> None:
    with holdfast.connect("memory://behind") as locks:
        once, accounts = locks.once("payments", keep="1h", takeover="refuse"), locks.actors("accounts")
        for page in (once.attempts, accounts.views):
            with pytest.raises(holdfast.Misconfigured, match="after"):
                page("\ud800")
