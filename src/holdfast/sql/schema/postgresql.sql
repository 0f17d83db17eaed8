-- What `holdfast.sql.Once` remembers, in the database of the effects. Times are microseconds of the server's clock.
CREATE TABLE IF NOT EXISTS holdfast_once (
    name        text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    done        smallint NOT NULL,  -- 0 while it is under way
    fingerprint text     NOT NULL,  -- of the payload; empty where none was given
    result      bytea    NOT NULL,
    kept_until  bigint   NOT NULL,
    PRIMARY KEY (name, key)
);

CREATE INDEX IF NOT EXISTS holdfast_once_kept_until ON holdfast_once (kept_until);
