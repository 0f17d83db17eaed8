-- The event log. Names differ when their bytes do. `data` is JSON in ASCII.
-- Created by hand: DDL ends a transaction here, so the log cannot make its tables in yours.
-- Other users need: GRANT SELECT, INSERT, UPDATE, DELETE on these five tables.

-- The last version of each stream. A row is never deleted: versions must not begin anew.
CREATE TABLE IF NOT EXISTS holdfast_log_stream (
    stream  varbinary(512) PRIMARY KEY,
    version bigint NOT NULL
) ENGINE=InnoDB;

-- `slot` is the stable hash of the stream, by which consumers are partitioned.
CREATE TABLE IF NOT EXISTS holdfast_log (
    position bigint PRIMARY KEY,
    stream   varbinary(512) NOT NULL,
    version  bigint NOT NULL,
    slot     bigint NOT NULL,
    id       varbinary(200) NOT NULL,
    type     varbinary(512) NOT NULL,
    data     longtext CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    UNIQUE KEY by_version (stream, version),
    UNIQUE KEY by_id (stream, id)
) ENGINE=InnoDB;

-- `last` is the last position that was given; its row is locked from an append to the end of its transaction, which is
-- what puts positions in the order of commits. `truncated` is the highest position that was removed.
CREATE TABLE IF NOT EXISTS holdfast_log_state (
    name     varbinary(16) PRIMARY KEY,
    position bigint NOT NULL
) ENGINE=InnoDB;

INSERT IGNORE INTO holdfast_log_state (name, position) VALUES ('last', 0), ('truncated', 0);

-- What a fold had come to at a version of its stream.
CREATE TABLE IF NOT EXISTS holdfast_log_snapshot (
    stream  varbinary(512) NOT NULL,
    name    varbinary(200) NOT NULL,
    version bigint NOT NULL,
    state   longtext CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    PRIMARY KEY (stream, name)
) ENGINE=InnoDB;

-- How far each consumer has acknowledged. `minor` is 0.
CREATE TABLE IF NOT EXISTS holdfast_log_cursor (
    consumer varbinary(512) NOT NULL,
    part     integer NOT NULL,
    parts    integer NOT NULL,
    major    bigint NOT NULL,
    minor    bigint NOT NULL,
    PRIMARY KEY (consumer, parts, part)
) ENGINE=InnoDB;
