"""The talk at the beginning of a connection, without one."""

from __future__ import annotations

import gc
import warnings

from holdfast.backends.mysql.capabilities import CREATED, _create


def test_a_talk_that_is_cut_off_while_the_tables_are_made_just_ends() -> None:
    """Nothing is said any more where there is nobody to say it to."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        talk = _create("is not there")
        next(talk)
        next(talk)
        talk.close()
        del talk
        gc.collect()


def test_what_is_begun_is_ended() -> None:
    talk = _create("is not there")
    said = [next(talk)]
    try:
        while True:
            said.append(talk.send(None))  # type: ignore[arg-type]
    except StopIteration:
        pass
    assert said[-1] == CREATED
