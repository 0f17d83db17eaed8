-- The embedded engine's tables.
--
-- A name's line is its rows in `claim`, ordered by `place`. Place 0 is the name's seat: it stays when the line is
-- empty, because it carries the mark (the last token), and it hosts the claim that arrives in an empty line, and in a
-- mutex's line mostly whoever holds. So an uncontended take and an uncontended release are one statement on one row
-- each, and to hand over is to move the heir's row onto the seat. A seat whose mark is a day old and
-- that hosts nobody may be deleted: calendar time has passed the mark.
--
-- Times are microseconds since the machine started (`meta.boot` says which start of which `meta.machine`: after another
-- one, every holder is gone). `token` is 0 while a claim waits; `owner` is NULL where a seat hosts nobody.
--
-- A seat says, too, how the last hold of its name ended (rule 6 of `_core/line.py`); `ended_robust`: what it left is to be
-- put right, and until then the seat stays. The columns from `robust` on were added by version 4 of the format.

CREATE TABLE IF NOT EXISTS claim (
    name     TEXT    NOT NULL,
    place    INTEGER NOT NULL,
    mark     INTEGER NOT NULL DEFAULT 0,
    owner    TEXT,
    token    INTEGER NOT NULL DEFAULT 0,
    weight   INTEGER NOT NULL DEFAULT 1,
    capacity INTEGER NOT NULL DEFAULT 1,
    fair     INTEGER NOT NULL DEFAULT 1,
    ttl      INTEGER NOT NULL DEFAULT 0,
    patience INTEGER NOT NULL DEFAULT 0,
    delay    INTEGER NOT NULL DEFAULT 0,
    since    INTEGER NOT NULL DEFAULT 0,
    expires  INTEGER NOT NULL DEFAULT 0,
    evicted  INTEGER NOT NULL DEFAULT 0,
    wake     TEXT    NOT NULL DEFAULT '',
    actor    TEXT    NOT NULL DEFAULT '',
    mode     TEXT    NOT NULL DEFAULT 'lock',
    host     TEXT    NOT NULL DEFAULT '',
    pid      INTEGER NOT NULL DEFAULT 0,
    robust   INTEGER NOT NULL DEFAULT 0,
    ended_token  INTEGER NOT NULL DEFAULT 0,
    ended_owner  TEXT    NOT NULL DEFAULT '',
    ended_how    TEXT    NOT NULL DEFAULT '',
    ended_robust INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (name, place)
) WITHOUT ROWID;

-- What keeps a verb from looking at all who wait. None of them has an entry for a seat, so an uncontended take or release
-- touches none.
CREATE INDEX IF NOT EXISTS queued ON claim (owner, name) WHERE place > 0;
CREATE INDEX IF NOT EXISTS holding ON claim (name) WHERE place > 0 AND token > 0;
CREATE INDEX IF NOT EXISTS overtaking ON claim (name) WHERE place > 0 AND fair = 0;

-- One number per limiter: the theoretical arrival time of GCRA.
CREATE TABLE IF NOT EXISTS rate (
    name TEXT PRIMARY KEY,
    tat  INTEGER NOT NULL
) WITHOUT ROWID;

-- Small records with a version (see `holdfast.record`). `alive_until` is as the times above; `kept_until` is calendar time,
-- and `keep` is for how long from the last touch.
CREATE TABLE IF NOT EXISTS record (
    key         TEXT    PRIMARY KEY,
    version     INTEGER NOT NULL,
    data        BLOB    NOT NULL,
    owner       TEXT    NOT NULL,
    alive_until INTEGER NOT NULL,
    kept_until  INTEGER NOT NULL,
    keep        INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS record_kept_until ON record (kept_until);

-- cluster: the identity of this file, for sequencers. machine, boot: the machine and its start that times refer to;
-- clock: engine time when it was last opened, where the system does not tell its start. tidied: the last name visited.
CREATE TABLE IF NOT EXISTS meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
