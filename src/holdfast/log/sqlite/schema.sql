-- The event log. `data` is JSON in ASCII.

-- The last version of each stream. A row is never deleted: versions must not begin anew.
CREATE TABLE IF NOT EXISTS holdfast_log_stream (
    stream  TEXT    NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- `slot` is the stable hash of the stream, by which consumers are partitioned. AUTOINCREMENT: a position is never given
-- again, also when the last events were truncated.
CREATE TABLE IF NOT EXISTS holdfast_log (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream   TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    slot     INTEGER NOT NULL,
    id       TEXT    NOT NULL,
    type     TEXT    NOT NULL,
    data     TEXT    NOT NULL,
    UNIQUE (stream, version),
    UNIQUE (stream, id)
);

-- `truncated` is the highest position that was removed.
CREATE TABLE IF NOT EXISTS holdfast_log_state (
    name     TEXT    NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) WITHOUT ROWID;

INSERT OR IGNORE INTO holdfast_log_state (name, position) VALUES ('truncated', 0);

-- What a fold had come to at a version of its stream.
CREATE TABLE IF NOT EXISTS holdfast_log_snapshot (
    stream  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    state   TEXT    NOT NULL,
    PRIMARY KEY (stream, name)
) WITHOUT ROWID;

-- How far each consumer has acknowledged. `minor` is 0.
CREATE TABLE IF NOT EXISTS holdfast_log_cursor (
    consumer TEXT    NOT NULL,
    part     INTEGER NOT NULL,
    parts    INTEGER NOT NULL,
    major    INTEGER NOT NULL,
    minor    INTEGER NOT NULL,
    PRIMARY KEY (consumer, parts, part)
) WITHOUT ROWID;
