"""Where things stand in etcd. All keys of a namespace begin with its name and a slash: for roles, and to look by hand.

    NAMESPACE/line/NAME␀SLOT     a claim: its place is its create revision, its life that of its holder's etcd lease
    NAMESPACE/line/NAME␀~OWNER   a tombstone: keeps a name closed after its holder (lock_delay, hold_at_least)
    NAMESPACE/line/NAME␀~~SLOT   an end note: says of a hold that is gone that it did not end cleanly
    NAMESPACE/tail/NAME          the key of the claim that came to wait last, written along with it
    NAMESPACE/note/OWNER         why the claim is gone, for its owner
    NAMESPACE/ask/OWNER          somebody asks the owner to give way
    NAMESPACE/rate/NAME          a limiter's count
    NAMESPACE/record/KEY         a record
    NAMESPACE/alive/KEY          somebody stands behind the record: its owner and ttl

Names have no control characters, so a NUL ends them and no name's range holds another's keys. A slot is a coordinator's
id and a number, which no two claims of it have at a time and which is used again: until it is compacted etcd walks over
every key that ever stood in a range, and with a key for each acquisition a take would become slower and slower.
"""

from __future__ import annotations

from .rpc import b64, end_of, unb64

TOMBSTONE = "~"
END_NOTE = "~~"
"""What begins with it stands behind the tombstones, whose owners begin with other letters."""
MOST_KNOWN_COUNT = 1000


def slot_of(key: str) -> str:
    """Of a claim's key, in base64."""
    return unb64(key).rpartition("\0")[2]


class Keys:
    """The keys of one namespace, in base64."""

    def __init__(self, namespace: str) -> None:
        self._line = f"{namespace}/line/"
        self._tail = f"{namespace}/tail/"
        self._note = f"{namespace}/note/"
        self._ask = f"{namespace}/ask/"
        self._rate = f"{namespace}/rate/"
        self._record = f"{namespace}/record/"
        self._alive = f"{namespace}/alive/"
        self.root = b64(f"{namespace}/")
        """A key of the namespace where nothing ever stands."""
        self._known: dict[str, tuple[str, str, str, str]] = {}
        """By name: where its line begins, where the tombstones and the end notes in it do, and where it ends."""

    def claim(self, name: str, slot: str) -> str:
        return b64(f"{self._line}{name}\0{slot}")

    def tombstone(self, name: str, owner: str) -> str:
        return b64(f"{self._line}{name}\0{TOMBSTONE}{owner}")

    def line(self, name: str) -> tuple[str, str]:
        """The range of all that stands in the line of a name."""
        begin, _, _, end = self._known.get(name) or self._learn(name)
        return begin, end

    def closing(self, name: str) -> tuple[str, str]:
        """The range of all that can keep a name closed: claims and tombstones, without end notes."""
        begin, _, notes, _ = self._known.get(name) or self._learn(name)
        return begin, notes

    def end_note(self, name: str, slot: str) -> str:
        return b64(f"{self._line}{name}\0{END_NOTE}{slot}")

    def end_notes(self, name: str) -> tuple[str, str]:
        _, _, notes, end = self._known.get(name) or self._learn(name)
        return notes, end

    def claims(self, name: str) -> tuple[str, str]:
        begin, middle, _, _ = self._known.get(name) or self._learn(name)
        return begin, middle

    def tombstones(self, name: str) -> tuple[str, str]:
        """And the end notes, which stand right behind them."""
        _, middle, _, end = self._known.get(name) or self._learn(name)
        return middle, end

    def _learn(self, name: str) -> tuple[str, str, str, str]:
        if len(self._known) >= MOST_KNOWN_COUNT:
            self._known.clear()
        line = f"{self._line}{name}"
        marks = ("\0", f"\0{TOMBSTONE}", f"\0{END_NOTE}", "\1")
        begin, tombstones, notes, end = (b64(line + mark) for mark in marks)
        known = self._known[name] = begin, tombstones, notes, end
        return known

    def tail(self, name: str) -> str:
        return b64(self._tail + name)

    def lines(self, prefix: str) -> tuple[str, str]:
        """The range of the lines of all names with this prefix."""
        return b64(self._line + prefix), end_of(self._line + prefix)

    def note(self, owner: str) -> str:
        return b64(self._note + owner)

    def ask(self, owner: str) -> str:
        return b64(self._ask + owner)

    def rate(self, name: str) -> str:
        return b64(self._rate + name)

    def record(self, key: str) -> str:
        return b64(self._record + key)

    def records_end(self, prefix: str) -> str:
        """Where the range of the records with this prefix ends."""
        return end_of(self._record + prefix)

    def key_of_record(self, key: str) -> str:
        """From its plain key."""
        return key[len(self._record) :]

    def alive(self, key: str) -> str:
        return b64(self._alive + key)

    def is_tombstone(self, key: str) -> bool:
        """From a plain key of a line; of an end note, too."""
        return key.rpartition("\0")[2].startswith(TOMBSTONE)

    def line_of_tail(self, key: str) -> str | None:
        """The name of the line whose tail this plain key is; None if it is none."""
        return key[len(self._tail) :] if key.startswith(self._tail) else None

    def addressee(self, key: str) -> str | None:
        """Whom a note or an ask is for, from its plain key; None for a claim."""
        return None if key.startswith(self._line) else key.rpartition("/")[2]
