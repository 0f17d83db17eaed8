-- What the locks protect. Each version is made by one write, and keeps what it was computed from, for ever.

-- The resource's own order: everything it accepted. A write is a version; its number is the version's.
CREATE TABLE IF NOT EXISTS log (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    verb    TEXT    NOT NULL CHECK (verb IN ('claim', 'write')),
    name    TEXT    NOT NULL,
    client  TEXT    NOT NULL,
    process INTEGER NOT NULL,
    seq     INTEGER NOT NULL,
    token   INTEGER NOT NULL,
    time    INTEGER NOT NULL,
    before  INTEGER NOT NULL,             -- the version it replaced
    parent  INTEGER NOT NULL,             -- the version it was computed from
    counter INTEGER NOT NULL
);

-- What is there now. The set of a version is its own number and the set of its parent, so that "what I have read, and
-- one more" is written by naming the version that was read: as blind as writing all of it, and as cheap as one row.
CREATE TABLE IF NOT EXISTS head (
    name    TEXT    PRIMARY KEY,
    version INTEGER NOT NULL,
    counter INTEGER NOT NULL
) WITHOUT ROWID;
