-- What `holdfast.sql.Once` remembers, in the database of the effects. Times are microseconds of the machine's clock.
CREATE TABLE IF NOT EXISTS holdfast_once (
    name        TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    done        INTEGER NOT NULL,  -- 0 while it is under way
    fingerprint TEXT    NOT NULL,  -- of the payload; empty where none was given
    result      BLOB    NOT NULL,
    kept_until  INTEGER NOT NULL,
    PRIMARY KEY (name, key)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS holdfast_once_kept_until ON holdfast_once (kept_until);
