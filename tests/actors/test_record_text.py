"""An actor's record is text: what was put in comes out, whatever ids and values hold. Other text is refused."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast.recipes.actor_record import REMEMBERED_COUNT, ActorRecord, Handled, InboxMessage
from holdfast.record import Record

IDS = ['"', "\\", "\\u0022", "a", "aa", "é", "🐘", "[", "a,b", " ", "'", "\u2028", '\\"', "n", "null"]


def stored(data: bytes) -> Record:
    return Record("actor:lists:k", 7, data, "", 0.0)


def again(record: ActorRecord) -> ActorRecord:
    found = ActorRecord.decode(stored(record.encode()))
    assert found == record
    return found


def test_what_was_put_in_comes_out() -> None:
    record = again(ActorRecord())
    for number, name in enumerate(IDS):
        body = json.dumps([name, "\n\t\x00", f'\n["{name}",0'])
        assert not record.knows(name), name
        record = again(record.with_message(InboxMessage(name, body, bool(number % 2), number, f'{name}\n\t"')))
        assert record.knows(name)
        assert record.fate(name) is None
    for number, name in enumerate(IDS):
        head = record.head
        assert head is not None
        assert (head.id, json.loads(head.body)[0], head.tries, head.error) == (name, name, number, f'{name}\n\t"')
        assert record.head_number == number + 1
        outcome = Handled(name, *((f'"{number}"', None) if number % 3 else (None, "é\n")))
        record = again(record.without_first(json.dumps(name), [outcome]))
        assert record.fate(name) == outcome
    assert (record.waiting, record.inbox, record.head) == (0, "", None)
    for name in IDS:
        record = again(record.without_answers([name]))
        assert record.fate(name) == Handled(name)
    assert record.outcomes == "{}"


def test_the_last_ids_are_remembered_and_their_outcomes_with_them() -> None:
    record = ActorRecord()
    for number in range(REMEMBERED_COUNT + 1):
        name = f"m{number}"
        record = record.with_message(InboxMessage(name, "1", True)).without_first("1", [Handled(name, "2")])
        record = record if number % 2 else record.without_answers([name])
    assert [record.knows(f"m{number}") for number in (0, 1, REMEMBERED_COUNT)] == [False, True, True]
    assert len(json.loads(record.outcomes)) == REMEMBERED_COUNT // 2
    assert (record.known_number, record.remembered, record.ids.count("\t")) == (2, REMEMBERED_COUNT, 257)


@pytest.mark.parametrize("waiting", [3, 4, 300])
@pytest.mark.parametrize("remembered", [0, 250, REMEMBERED_COUNT])
def test_a_group_is_the_same_as_its_messages(waiting: int, remembered: int) -> None:
    one = ActorRecord(careful=2, begun=3)
    for number in range(remembered):
        one = one.with_message(InboxMessage(f"old{number}", "1")).without_first("1", [Handled(f"old{number}")])
    one = one._replace(careful=2)
    for number in range(waiting):
        one = one.with_message(InboxMessage(f"new{number}", "1", True))
    group = [Handled("new0"), Handled("new1", "7"), Handled("new2", None, "no")]
    several = again(one.without_first("3", group))
    for number, each in enumerate(group):
        one = again(one.without_first(str(number + 1), [each]))
    assert one == several
    assert (one.waiting, one.head_number, one.careful) == (waiting - 3, remembered + 4, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b'{"state":"null","inbox":[],"handled":[],"told":0,"mark":0,"listed":false}',
        b"1\n2\n3\n4",
        b'["holdfast-actor-1",0,0,0,0,0]\nnull\n{}\n\t',
        b'["holdfast-actor-2",0,0,0,0,0]\nnull\n{}\n\t',
        b'["holdfast-actor-2",0,0,0,0,0,0,0]\nnull\n{}',
    ],
)
def test_what_is_no_such_text_is_refused(data: bytes) -> None:
    with pytest.raises(holdfast.Misconfigured, match="'actor:lists:k' was not written by this version of holdfast"):
        ActorRecord.decode(stored(data))
