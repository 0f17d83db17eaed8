-- Session locks (`mysql+session://`): the server's own user locks (GET_LOCK), with a token for each grant, and with what
-- others can see of who holds and who waits.
--
-- 1. A user lock is named by the hash of its name in hexadecimal: 64 characters are all that it may have, and it does
--    not tell upper from lower case.
-- 2. Who holds is what IS_USED_LOCK says; the row tells who that is, by the connection that wrote it. Who waits has a
--    row for as long as the connection lives that wrote it, which has a user lock of its own to show that.
-- 3. These rows are in memory, so a grant waits for no commit. When a restart of the server forgets them, every session
--    has ended, and the floor of all tokens has been raised above them (`ceiling.sql`). A row of such a table has a fixed
--    size, so a long name is kept elsewhere, and waits for a commit.

CREATE TABLE IF NOT EXISTS holdfast_session (
    hash       binary(32) PRIMARY KEY,
    mark       bigint NOT NULL,
    above      bigint NOT NULL,  -- the ceiling, as it was when the procedure last came by
    since      bigint NOT NULL,
    connection bigint NOT NULL,
    owner      varbinary(64)  NOT NULL,
    who        varbinary(255) NOT NULL  -- actor, mode, host, process and ttl, a line each; then the name, if it is short
) ENGINE = MEMORY;

CREATE TABLE IF NOT EXISTS holdfast_session_waiter (
    owner      varbinary(64) PRIMARY KEY,
    hash       binary(32) NOT NULL,
    since      bigint NOT NULL,
    connection bigint NOT NULL,
    who        varbinary(255) NOT NULL
) ENGINE = MEMORY;

CREATE TABLE IF NOT EXISTS holdfast_session_name (
    hash  binary(32) PRIMARY KEY,
    since bigint NOT NULL,
    name  varbinary(1100) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

DELIMITER $$

-- `n` is a long name, and empty if the name is in `who`.

-- Take a session lock, within so many seconds: its token, or 0; then, if it is to be waited for (`queue`), others see it.
-- `seen`: they have seen it waiting.
CREATE OR REPLACE PROCEDURE holdfast_session_take(
    l varbinary(64), h binary(32), n varbinary(1100), o varbinary(64), who_ varbinary(255), within_ int, queue boolean,
    seen boolean
) SQL SECURITY INVOKER
BEGIN
    DECLARE now, token_, below, above bigint DEFAULT 0;
    IF GET_LOCK(l, within_) = 1 THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        SET above = (SELECT f.ceiling FROM holdfast_session_floor f WHERE f.only_row = 1);
        IF above IS NULL OR above <= now THEN
            CALL holdfast_session_raise(now);
            SET above = (SELECT f.ceiling FROM holdfast_session_floor f WHERE f.only_row = 1);
        END IF;
        SET below = (SELECT f.floor FROM holdfast_session_floor f WHERE f.only_row = 1);
        UPDATE holdfast_session s SET s.mark = LAST_INSERT_ID(GREATEST(s.mark + 1, now, below)), s.since = now,
               s.above = above, s.connection = CONNECTION_ID(), s.owner = o, s.who = who_ WHERE s.hash = h;
        IF ROW_COUNT() > 0 THEN
            SET token_ = LAST_INSERT_ID();
        ELSE
            -- First: once the row below is there, nobody would add a name that is missing.
            IF n <> '' THEN
                INSERT INTO holdfast_session_name (hash, since, name) VALUES (h, now, n)
                    ON DUPLICATE KEY UPDATE since = now;
            END IF;
            BEGIN
                DECLARE EXIT HANDLER FOR 1114 BEGIN  -- the table is full
                    CALL holdfast_session_forget();
                    SET below = (SELECT f.floor FROM holdfast_session_floor f WHERE f.only_row = 1);
                    SET token_ = GREATEST(now, below);
                    INSERT INTO holdfast_session (hash, mark, above, since, connection, owner, who)
                        VALUES (h, token_, above, now, CONNECTION_ID(), o, who_);
                END;
                SET token_ = GREATEST(now, below);
                INSERT INTO holdfast_session (hash, mark, above, since, connection, owner, who)
                    VALUES (h, token_, above, now, CONNECTION_ID(), o, who_);
            END;
        END IF;
        IF token_ >= above THEN
            CALL holdfast_session_raise(token_);
        END IF;
    ELSEIF queue THEN
        CALL holdfast_session_queue(h, n, o, who_);
    END IF;
    IF seen AND (token_ > 0 OR NOT queue) THEN
        DELETE FROM holdfast_session_waiter WHERE owner = o;
    END IF;
    SELECT token_;
END $$

-- Make room: drop the rows of locks that nobody holds, and of waiters who are gone. The floor takes over what their marks
-- stood for, and is raised before any of them goes.
CREATE OR REPLACE PROCEDURE holdfast_session_forget() SQL SECURITY INVOKER
BEGIN
    UPDATE holdfast_session_floor f SET f.floor = GREATEST(f.floor, 1 + COALESCE((
        SELECT MAX(s.mark) FROM holdfast_session s WHERE IS_USED_LOCK(LOWER(HEX(s.hash))) IS NULL), 0));
    DELETE FROM holdfast_session WHERE IS_USED_LOCK(LOWER(HEX(hash))) IS NULL
        AND mark < (SELECT f.floor FROM holdfast_session_floor f WHERE f.only_row = 1);
    DELETE FROM holdfast_session_waiter WHERE IS_USED_LOCK(CONCAT('holdfast-session-', connection)) IS NULL;
END $$

-- Be seen waiting.
CREATE OR REPLACE PROCEDURE holdfast_session_queue(
    h binary(32), n varbinary(1100), o varbinary(64), who_ varbinary(255)
) SQL SECURITY INVOKER
BEGIN
    DECLARE now bigint DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    BEGIN
        DECLARE EXIT HANDLER FOR 1114 BEGIN  -- the table is full
            CALL holdfast_session_forget();
            INSERT INTO holdfast_session_waiter (owner, hash, since, connection, who)
                VALUES (o, h, now, CONNECTION_ID(), who_);
        END;
        INSERT INTO holdfast_session_waiter (owner, hash, since, connection, who)
            VALUES (o, h, now, CONNECTION_ID(), who_) ON DUPLICATE KEY UPDATE connection = CONNECTION_ID();
    END;
    IF n <> '' THEN
        INSERT INTO holdfast_session_name (hash, since, name) VALUES (h, now, n) ON DUPLICATE KEY UPDATE since = now;
    END IF;
END $$

DELIMITER ;
