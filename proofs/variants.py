"""What is checked: each variant of the model, and what must come of it.

`holds`: every run keeps every promise that is checked. A letter: that promise must break, and there is a trail to read.
W is no promise but a witness, something good that must be possible, so that nothing holds merely for want of events.
"""

from __future__ import annotations

from dataclasses import dataclass

PROMISES = {
    "U": "unique: two grants have the same token",
    "R": "real-time order: the grant began after another was complete, and its token is not larger",
    "F": "rightful holder: a majority holds for a token that is smaller than one already granted",
    "E": "extension: it began after a larger token was granted, and succeeded",
    "X": "exclusion: two clients believe that they hold the lock",
    "O": "grant order: a grant completes after one with a larger token",
    "W": "witness: a lease was extended by the yes of a node that forgot everything and came back",
}
BITS = {letter: 1 << place for place, letter in enumerate(PROMISES)}


@dataclass(frozen=True, slots=True)
class Variant:
    """`flags`: the model's switches, without the -D. `only`: the promises that are checked; all others are ignored."""

    name: str
    expected: str
    flags: str
    shows: str
    only: str = ""
    deep: bool = False

    def defines(self) -> list[str]:
        bits = sum(BITS[letter] for letter in self.only)
        return [f"-D{flag}" for flag in self.flags.split()] + ([f"-DCHECKS={bits}"] if bits else [])


def _sound(name: str, flags: str, shows: str, only: str = "", deep: bool = False) -> Variant:
    return Variant(name, "holds", flags, shows, only, deep)


def _broken(name: str, letter: str, flags: str, shows: str) -> Variant:
    return Variant(name, letter, flags, shows, letter)


VARIANTS = (
    # the protocol, with no clock assumption
    _sound("ballots-2", "SLOTS=2 CHAIN", "2 clients, clocks may lie"),
    _sound("ballots-3", "SLOTS=3 CHAIN", "3 clients, clocks may lie"),
    _sound("ballots-5-nodes", "N=5 SLOTS=2 CHAIN", "2 clients, 5 nodes"),
    _sound("ballots-4", "SLOTS=4 CHAIN", "4 clients, or 3 and a stray", deep=True),
    _sound("ballots-3-5-nodes", "N=5 SLOTS=3 CHAIN", "3 clients, 5 nodes", deep=True),
    _sound("plain", "SLOTS=2 CHAIN PLAIN", "2 rounds in all, without the reductions of ranks.pml"),
    _sound("plain-3", "SLOTS=3 CHAIN PLAIN", "3 rounds in all, without the reductions of ranks.pml", deep=True),
    # the same with honest validity: exclusion and grant order too
    _sound("timely-2", "SLOTS=2 CHAIN TIMELY", "2 clients, honest validity"),
    _sound("timely-3", "SLOTS=3 CHAIN TIMELY", "3 clients, honest validity"),
    _sound("timely-4", "SLOTS=4 CHAIN TIMELY", "4 clients, honest validity", deep=True),
    _sound("timely-5-nodes", "N=5 SLOTS=2 CHAIN TIMELY", "2 clients, 5 nodes, honest validity"),
    # nodes that forget, and are re-seeded
    _sound("reseed-2", "SLOTS=2 CHAIN TIMELY FORGET", "S1 to S4: out, wait, read a majority of others"),
    _sound("reseed-3", "SLOTS=3 CHAIN TIMELY FORGET", "the same with 3 clients"),
    _sound("reseed-5-nodes", "N=5 SLOTS=2 CHAIN TIMELY FORGET SPARE", "5 nodes, a minority empty at a time", deep=True),
    _sound("vouch-2", "SLOTS=2 CHAIN FORGET VOUCH RESTARTS=2", "V1 to V4: the same when clocks lie; 2 restarts"),
    _sound("vouch-timely", "SLOTS=2 CHAIN TIMELY FORGET VOUCH RESTARTS=2", "V1 to V4, honest validity; 2 restarts"),
    _sound("vouch-3", "SLOTS=3 CHAIN FORGET VOUCH RESTARTS=1", "V1 to V4, 3 clients; 1 restart", deep=True),
    _sound("founding-wait", "SLOTS=2 CHAIN PLAIN TIMELY FORGET FOUND", "all forget, and wait: exclusion is kept", "X"),
    _broken("witness", "W", "SLOTS=2 PLAIN TIMELY FORGET WITNESS", "a node that came back takes part again"),
    _broken("witness-vouch", "W", "SLOTS=2 PLAIN FORGET VOUCH WITNESS", "the same with V1 to V4"),
    # wrong tokens
    _broken("naive", "R", "SLOTS=3 COUNTERS NAIVE", "token = the largest of the nodes' counters"),
    _broken("id-after", "F", "SLOTS=2 COUNTERS ID_AFTER", "lock first, then ask a perfect counter for the token"),
    _broken("late-reply", "O", "SLOTS=2 CLAIM_X_O", "grants complete in token order? not without clocks"),
    _broken("lying-clock", "X", "SLOTS=2 CLAIM_X_O", "exclusion? not without clocks: that is what fences are for"),
    # each rule, broken
    _broken("owner-reused", "R", "SLOTS=2 OWNER_REUSED", "rule 1: a restarted client uses its old owner id"),
    _broken("equal-mark", "U", "SLOTS=2 EQUAL_MARK", "rule 2: mark <= ballot instead of <"),
    _broken("mark-dies", "R", "SLOTS=2 MARK_DIES", "rule 3: the mark goes with the hold"),
    _broken("mixed-ballots", "R", "SLOTS=2 CHAIN MIXED", "rule 4: yeses to different ballots are added up"),
    _broken("extend-blind", "E", "SLOTS=2 EXTEND_BLIND", "rule 5: an extension brings back any hold that is gone"),
    _broken("release-any", "X", "SLOTS=2 CHAIN TIMELY RELEASE_ANY", "rule 6: a late release clears a later hold"),
    _broken("forgetful", "R", "SLOTS=2 FORGET AMNESIA", "rule 7: a node that forgot stays in the quorum"),
    _broken("reseed-no-wait", "R", "SLOTS=2 TIMELY FORGET NO_WAIT", "S2: read at once, do not wait"),
    _broken("reseed-early", "R", "SLOTS=2 TIMELY FORGET READ_EARLY", "S3: read first, then wait"),
    _broken("reseed-one", "R", "SLOTS=2 TIMELY FORGET READ_ONE", "S3: read fewer than a majority"),
    _broken("reseed-blind", "R", "SLOTS=2 TIMELY FORGET READ_BLIND", "S3: read a node that forgot as well"),
    _broken("reseed-lying-clock", "R", "SLOTS=2 FORGET", "S1 to S4 alone, when clocks lie"),
    _broken(
        "vouch-no-wait", "X", "SLOTS=2 TIMELY FORGET VOUCH NO_WAIT", "V1 to V4 without S2: right tokens, no exclusion"
    ),
    _broken("vouch-no-copy", "R", "SLOTS=2 FORGET VOUCH NO_COPY", "V3: the numbers of others are not taken over"),
    _broken("founding", "X", "SLOTS=2 TIMELY FORGET FOUND NO_WAIT", "all forget, and begin anew at once"),
)
