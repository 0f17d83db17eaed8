-- What `holdfast.sql.Once` remembers, in the database of the effects. Times are microseconds of the server's clock.
CREATE TABLE IF NOT EXISTS holdfast_once (
    name        varbinary(512) NOT NULL,
    `key`       varbinary(512) NOT NULL,
    done        smallint       NOT NULL,  -- 0 while it is under way
    fingerprint varbinary(64)  NOT NULL,  -- of the payload; empty where none was given
    result      mediumblob     NOT NULL,
    kept_until  bigint         NOT NULL,
    PRIMARY KEY (name, `key`),
    INDEX kept_until (kept_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
