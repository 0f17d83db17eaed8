-- The lock table of MariaDB: tables, and one procedure per verb. Made for MariaDB 10.6 and later.
--
-- A name's line is its rows in `holdfast_claim`, ordered by `place`. Place 0 is the name's seat: it stays when the line
-- is empty, because it carries the mark (the last token), and it hosts the claim that comes to an empty line. So an
-- uncontended take and an uncontended release write one row each, in place, each by one committed update.
--
-- 1. Whoever changes anything else in a line holds the row lock of its seat. Several seats are locked in the order of
--    their names, so two requests never wait for each other in a circle.
-- 2. A transaction first locks its seats, and reads after that, with locking reads: they see what was committed last,
--    under READ COMMITTED and under REPEATABLE READ. `FORCE INDEX` keeps a small table from being scanned, which
--    would lock the lines of others.
-- 3. Times are microseconds of the server's clock (UTC: no zone, no summer time), read after the seat was locked. No
--    client's clock is looked at. The rules of the line are those of `holdfast/_core/line.py`; a property test
--    compares every reply.
-- 4. A promoted claim is told by a row in `holdfast_push`, in the same transaction. After the commit the connection
--    that listens for it (it holds the user lock `holdfast-ears-…`) is roused from its sleep with KILL QUERY. It looks
--    by itself four times a second, so a rousing that is lost or not allowed costs a quarter of a second.
-- 5. A KILL leaves a procedure without its handlers, in the middle of a transaction: the client closes its connection
--    then, and the server rolls back.
--
-- Text is binary: names differ when their bytes do. Other users need: GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE on
-- the database (or on these tables and procedures).

SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

CREATE TABLE IF NOT EXISTS holdfast_claim (
    name     varbinary(1100) NOT NULL,
    place    bigint  NOT NULL,
    crowded  boolean NOT NULL DEFAULT false,  -- of a seat: there are places behind it
    evicted  boolean NOT NULL DEFAULT false,
    fair     boolean NOT NULL DEFAULT true,
    mark     bigint  NOT NULL DEFAULT 0,      -- of a seat
    token    bigint  NOT NULL DEFAULT 0,      -- 0 while it waits
    ttl      bigint  NOT NULL DEFAULT 0,
    patience bigint  NOT NULL DEFAULT 0,
    delay    bigint  NOT NULL DEFAULT 0,
    since    bigint  NOT NULL DEFAULT 0,
    expires  bigint  NOT NULL DEFAULT 0,
    capacity int     NOT NULL DEFAULT 1,      -- of a seat
    weight   int     NOT NULL DEFAULT 1,
    pid      int     NOT NULL DEFAULT 0,
    wake     bigint  NOT NULL DEFAULT 0,      -- whose ears hear of its promotion
    owner    varbinary(255),                  -- NULL where a seat hosts nobody
    actor    varbinary(255) NOT NULL DEFAULT '',
    mode     varbinary(64)  NOT NULL DEFAULT 'lock',
    host     varbinary(255) NOT NULL DEFAULT '',
    PRIMARY KEY (name, place)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

-- What is on its way to the waiters of a coordinator.
CREATE TABLE IF NOT EXISTS holdfast_push (
    wake  bigint NOT NULL,
    owner varbinary(255) NOT NULL,
    token bigint NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (wake, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

-- One number per limiter: the theoretical arrival time of GCRA.
CREATE TABLE IF NOT EXISTS holdfast_rate (
    name varbinary(1100) PRIMARY KEY,
    tat  bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

-- The marks of session locks (`mysql+session://`): the last token of each name, by its hash. In memory: what a restart
-- of the server forgets, the clock has passed, and every session has ended with it.
CREATE TABLE IF NOT EXISTS holdfast_session (
    hash binary(32) PRIMARY KEY,
    mark bigint NOT NULL
) ENGINE = MEMORY;

-- cluster: the identity of this database, for sequencers. version: of this file.
CREATE TABLE IF NOT EXISTS holdfast_meta (
    word  varbinary(64) PRIMARY KEY,
    value varbinary(255) NOT NULL
) ENGINE = InnoDB;

DELIMITER $$

-- Drop what is over. The seat is locked.
CREATE OR REPLACE PROCEDURE holdfast_sweep(n varbinary(1100), now bigint) SQL SECURITY INVOKER
BEGIN
    DELETE c FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n AND c.place > 0 AND now >= c.expires
        + CASE WHEN c.token = 0 THEN 0 WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END;
    UPDATE holdfast_claim c SET c.owner = NULL, c.token = 0
        WHERE c.name = n AND c.place = 0 AND c.owner IS NOT NULL AND now >= c.expires
        + CASE WHEN c.token = 0 THEN 0 WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END;
END $$

-- Drop what is over; grant, in order, whatever fits now; and leave a push for those who are told by one: all but `asker`,
-- who reads the reply. Their ears are added to `roused`. The seat is locked.
CREATE OR REPLACE PROCEDURE holdfast_promote(n varbinary(1100), now bigint, asker varbinary(255), INOUT roused text)
    SQL SECURITY INVOKER
BEGIN
    DECLARE free, mark_, last_, at_, next_, wake_ bigint;
    DECLARE over_, waiting, weight_ int;
    DECLARE crowded_, behind, fair_ boolean;
    DECLARE blocked boolean DEFAULT false;
    DECLARE owner_ varbinary(255);
    REPEAT
        SELECT MAX(c.mark), MAX(c.crowded), MAX(c.place) > 0, COALESCE(SUM(c.owner IS NOT NULL AND c.token = 0), 0),
               MAX(IF(c.place = 0, c.capacity, 0)) - SUM(IF(c.token > 0 AND c.expires + c.delay > now, c.weight, 0)),
               COALESCE(SUM(c.owner IS NOT NULL AND now >= c.expires + CASE WHEN c.token = 0 THEN 0
                            WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END), 0)
            INTO mark_, crowded_, behind, waiting, free, over_
            FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n FOR UPDATE;
        IF over_ > 0 THEN
            CALL holdfast_sweep(n, now);
        END IF;
    UNTIL over_ = 0 END REPEAT;
    SET last_ = mark_, at_ = -1;
    IF waiting > 0 THEN
        granting: WHILE free > 0 DO
            SET next_ = NULL;
            SELECT c.place, c.owner, c.weight, c.fair, c.wake INTO next_, owner_, weight_, fair_, wake_
                FROM holdfast_claim c FORCE INDEX (PRIMARY)
                WHERE c.name = n AND c.place > at_ AND c.owner IS NOT NULL AND c.token = 0
                  AND (NOT blocked OR NOT c.fair AND c.weight <= free)
                ORDER BY c.place LIMIT 1 FOR UPDATE;
            IF next_ IS NULL THEN
                LEAVE granting;
            END IF;
            SET at_ = next_;
            IF weight_ > free THEN
                SET blocked = true;
            ELSE
                SET free = free - weight_, last_ = GREATEST(last_ + 1, now);
                UPDATE holdfast_claim c SET c.token = last_, c.since = now WHERE c.name = n AND c.place = at_;
                IF wake_ <> 0 AND owner_ <> asker THEN
                    INSERT INTO holdfast_push (wake, owner, token, since) VALUES (wake_, owner_, last_, now)
                        ON DUPLICATE KEY UPDATE token = last_, since = now;
                    SET roused = CONCAT(roused, wake_, ',');
                END IF;
            END IF;
        END WHILE;
    END IF;
    IF last_ <> mark_ OR crowded_ <> behind THEN
        UPDATE holdfast_claim c SET c.mark = last_, c.crowded = behind WHERE c.name = n AND c.place = 0;
    END IF;
END $$

-- After the commit: rouse the ears that a push has come for. Who may not, or finds them gone, leaves it at that.
CREATE OR REPLACE PROCEDURE holdfast_rouse(roused text) SQL SECURITY INVOKER
BEGIN
    DECLARE ears bigint;
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
    WHILE roused <> '' DO
        SET ears = IS_USED_LOCK(CONCAT('holdfast-ears-', SUBSTRING_INDEX(roused, ',', 1)));
        SET roused = SUBSTRING(roused, LOCATE(',', roused) + 1);
        IF ears IS NOT NULL AND ears <> CONNECTION_ID() THEN
            KILL QUERY ears;
        END IF;
    END WHILE;
END $$

-- Drop what is over, and see whether a line can be entered with this capacity: `other` is the one that it has, if it
-- can not, else 0. The seat is locked.
CREATE OR REPLACE PROCEDURE holdfast_open(n varbinary(1100), wanted int, now bigint, OUT other int) SQL SECURITY INVOKER
BEGIN
    DECLARE over_, standing, capacity_ int;
    SELECT MAX(IF(c.place = 0, c.capacity, 0)),
           COALESCE(SUM(c.owner IS NOT NULL AND c.expires + IF(c.token = 0, 0, c.delay) > now), 0),
           COALESCE(SUM(c.owner IS NOT NULL AND now >= c.expires + CASE WHEN c.token = 0 THEN 0
                        WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END), 0)
        INTO capacity_, standing, over_
        FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n FOR UPDATE;
    IF over_ > 0 THEN
        CALL holdfast_sweep(n, now);
    END IF;
    SET other = 0;
    IF capacity_ <> wanted AND standing > 0 THEN
        SET other = capacity_;
    ELSEIF capacity_ <> wanted THEN
        UPDATE holdfast_claim c SET c.capacity = wanted WHERE c.name = n AND c.place = 0;
    END IF;
END $$

-- Take a claim out of its line, whatever it is. The seat is locked.
CREATE OR REPLACE PROCEDURE holdfast_remove(n varbinary(1100), o varbinary(255)) SQL SECURITY INVOKER
BEGIN
    DELETE c FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n AND c.owner = o AND c.place > 0;
    UPDATE holdfast_claim c SET c.owner = NULL, c.token = 0 WHERE c.name = n AND c.place = 0 AND c.owner = o;
END $$

-- Enter one line, or find one's own place in it again; it was opened. `old`: the owner stood there before. If it waits:
-- when to look again (µs), how many stand before it, and the mark of the name.
CREATE OR REPLACE PROCEDURE holdfast_step(
    n varbinary(1100), o varbinary(255), weight_ int, fair_ boolean, ttl_ bigint, patience_ bigint, delay_ bigint,
    queue boolean, wake_ bigint, actor_ varbinary(255), mode_ varbinary(64), host_ varbinary(255), pid_ int, now bigint,
    OUT token_ bigint, OUT after_ bigint, OUT ahead bigint, OUT mark_ bigint, OUT old boolean, INOUT roused text
) SQL SECURITY INVOKER
BEGIN
    DECLARE last_, mine, free, waiting, ends bigint;
    DECLARE evicted_, crowded_ boolean;
    SELECT MAX(IF(c.owner IS NULL, NULL, c.place)), MAX(IF(c.owner = o, c.place, NULL)),
           MAX(IF(c.owner = o, c.token, 0)), MAX(IF(c.owner = o, c.evicted, 0)), MAX(IF(c.place = 0, c.crowded, 0)),
           MAX(IF(c.place = 0, c.capacity, 0)) - SUM(IF(c.token > 0 AND c.expires + c.delay > now, c.weight, 0))
        INTO last_, mine, token_, evicted_, crowded_, free
        FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n FOR UPDATE;
    SET after_ = 0, ahead = 0, mark_ = 0, old = mine IS NOT NULL;
    IF evicted_ THEN  -- its hold is over, but for its delay; who comes again stands at the end
        UPDATE holdfast_claim c SET c.owner = CONCAT('~', c.owner) WHERE c.name = n AND c.place = mine;
        SET mine = NULL, token_ = 0;
    END IF;
    IF mine IS NOT NULL THEN
        UPDATE holdfast_claim c SET c.wake = wake_, c.expires = now + IF(c.token > 0, c.ttl, c.patience)
            WHERE c.name = n AND c.place = mine;
    ELSEIF queue OR free > 0 THEN
        SET mine = COALESCE(last_ + 1, 0);
        INSERT INTO holdfast_claim (name, place, owner, weight, fair, ttl, patience, delay, since, expires, wake,
                                    actor, mode, host, pid)
        VALUES (n, mine, o, weight_, fair_, ttl_, patience_, delay_, now, now + patience_, wake_, actor_, mode_, host_, pid_)
        ON DUPLICATE KEY UPDATE
            owner = o, token = 0, evicted = false, weight = weight_, fair = fair_, ttl = ttl_, patience = patience_,
            delay = delay_, since = now, expires = now + patience_, wake = wake_, actor = actor_, mode = mode_,
            host = host_, pid = pid_;
        IF mine > 0 AND NOT crowded_ THEN
            UPDATE holdfast_claim c SET c.crowded = true WHERE c.name = n AND c.place = 0;
        END IF;
    END IF;
    IF mine IS NOT NULL AND free > 0 THEN
        CALL holdfast_promote(n, now, o, roused);
        IF token_ = 0 THEN  -- if it has been promoted just now: its owner is asking, so it is good for a ttl
            UPDATE holdfast_claim c SET c.expires = now + c.ttl WHERE c.name = n AND c.place = mine AND c.token > 0;
            SELECT c.token INTO token_ FROM holdfast_claim c WHERE c.name = n AND c.place = mine FOR UPDATE;
        END IF;
    END IF;
    IF token_ = 0 AND NOT queue THEN
        IF mine IS NOT NULL THEN
            CALL holdfast_remove(n, o);
        END IF;
    ELSEIF token_ = 0 THEN
        SELECT SUM(c.place < mine AND c.owner IS NOT NULL AND (c.token = 0 OR c.expires + c.delay > now)),
               SUM(c.place < mine AND c.owner IS NOT NULL AND c.token = 0),
               MIN(IF(c.token > 0 AND c.expires + c.delay > now, c.expires + c.delay, NULL)),
               MAX(c.mark)
            INTO ahead, waiting, ends, mark_
            FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n FOR UPDATE;
        SET after_ = patience_ DIV 3;
        IF waiting = 0 AND ends IS NOT NULL THEN  -- the first in line looks when a hold may have ended
            SET after_ = LEAST(after_, GREATEST(1000, ends - now + 500));
        END IF;
    END IF;
END $$

-- Take: enter a line, or only find out (`queue` off). Answers with the token of an uncontended take; or with five numbers:
-- token (0: not granted), look again after (µs), how many stand before it, the capacity if it did not match (else 0), and
-- the mark of the name for one that waits.
CREATE OR REPLACE PROCEDURE holdfast_take(
    n varbinary(1100), o varbinary(255), weight_ int, capacity_ int, fair_ boolean, ttl_ bigint, patience_ bigint,
    delay_ bigint, queue boolean, wake_ bigint, actor_ varbinary(255), mode_ varbinary(64), host_ varbinary(255), pid_ int
) SQL SECURITY INVOKER
BEGIN
    DECLARE now bigint DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    UPDATE holdfast_claim c SET
        c.token = GREATEST(c.mark + 1, now), c.mark = LAST_INSERT_ID(GREATEST(c.mark + 1, now)), c.owner = o,
        c.weight = weight_, c.capacity = capacity_, c.fair = fair_, c.ttl = ttl_, c.patience = patience_, c.delay = delay_,
        c.since = now, c.expires = now + ttl_, c.evicted = false, c.wake = 0, c.actor = actor_, c.mode = mode_,
        c.host = host_, c.pid = pid_
        WHERE c.name = n AND c.place = 0 AND c.owner IS NULL AND NOT c.crowded;
    IF ROW_COUNT() = 1 THEN
        SELECT LAST_INSERT_ID();
    ELSE
        CALL holdfast_enter(n, o, weight_, capacity_, fair_, ttl_, patience_, delay_, queue, wake_, actor_, mode_, host_, pid_);
    END IF;
END $$

CREATE OR REPLACE PROCEDURE holdfast_enter(
    n varbinary(1100), o varbinary(255), weight_ int, capacity_ int, fair_ boolean, ttl_ bigint, patience_ bigint,
    delay_ bigint, queue boolean, wake_ bigint, actor_ varbinary(255), mode_ varbinary(64), host_ varbinary(255), pid_ int
) SQL SECURITY INVOKER
BEGIN
    DECLARE now, token_, after_, ahead, mark_ bigint DEFAULT 0;
    DECLARE other int;
    DECLARE old boolean;
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    INSERT INTO holdfast_claim (name, place) VALUES (n, 0) ON DUPLICATE KEY UPDATE place = 0;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    CALL holdfast_open(n, capacity_, now, other);
    IF other = 0 THEN
        CALL holdfast_step(n, o, weight_, fair_, ttl_, patience_, delay_, queue, wake_, actor_, mode_, host_, pid_, now,
                           token_, after_, ahead, mark_, old, roused);
    END IF;
    COMMIT;
    IF roused <> '' THEN
        CALL holdfast_rouse(roused);
    END IF;
    SELECT CONCAT_WS(',', token_, after_, ahead, other, mark_);
END $$

-- Take several: all lines are entered in one step. `claims` is an array of [name, owner, weight, capacity, fair, ttl,
-- patience, delay, actor, mode], text in hexadecimal. The five numbers of each.
CREATE OR REPLACE PROCEDURE holdfast_take_all(
    claims longtext, queue boolean, wake_ bigint, host_ varbinary(255), pid_ int
) SQL SECURITY INVOKER
BEGIN
    DECLARE now, token_, after_, ahead, mark_ bigint DEFAULT 0;
    DECLARE many int DEFAULT JSON_LENGTH(claims);
    DECLARE i, other int DEFAULT 0;
    DECLARE old boolean;
    DECLARE mismatch, refused boolean DEFAULT false;
    DECLARE claim text;
    DECLARE reply, entered, roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    INSERT INTO holdfast_claim (name, place)
        SELECT UNHEX(a.n), 0 FROM JSON_TABLE(claims, '$[*]' COLUMNS (n varchar(2200) PATH '$[0]')) a ORDER BY UNHEX(a.n)
        ON DUPLICATE KEY UPDATE place = 0;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    WHILE i < many DO
        SET claim = JSON_EXTRACT(claims, CONCAT('$[', i, ']')), i = i + 1;
        CALL holdfast_open(UNHEX(JSON_VALUE(claim, '$[0]')), JSON_VALUE(claim, '$[3]'), now, other);
        SET mismatch = mismatch OR other <> 0, reply = CONCAT_WS(',', reply, 0, 0, 0, other, 0);
    END WHILE;
    IF NOT mismatch THEN
        SET i = 0, reply = '';
        WHILE i < many DO
            SET claim = JSON_EXTRACT(claims, CONCAT('$[', i, ']')), i = i + 1;
            CALL holdfast_step(
                UNHEX(JSON_VALUE(claim, '$[0]')), UNHEX(JSON_VALUE(claim, '$[1]')), JSON_VALUE(claim, '$[2]'),
                JSON_VALUE(claim, '$[4]'), JSON_VALUE(claim, '$[5]'), JSON_VALUE(claim, '$[6]'), JSON_VALUE(claim, '$[7]'),
                queue, wake_, UNHEX(JSON_VALUE(claim, '$[8]')), UNHEX(JSON_VALUE(claim, '$[9]')), host_, pid_, now,
                token_, after_, ahead, mark_, old, roused);
            SET refused = refused OR token_ = 0, reply = CONCAT_WS(',', reply, token_, after_, ahead, 0, mark_);
            IF token_ > 0 AND NOT old THEN
                SET entered = CONCAT(entered, i, ',');
            END IF;
        END WHILE;
        IF refused AND NOT queue THEN  -- all or none
            SET reply = REPEAT(',0,0,0,0,0', many);
            WHILE entered <> '' DO
                SET claim = JSON_EXTRACT(claims, CONCAT('$[', SUBSTRING_INDEX(entered, ',', 1) - 1, ']')),
                    entered = SUBSTRING(entered, LOCATE(',', entered) + 1);
                CALL holdfast_remove(UNHEX(JSON_VALUE(claim, '$[0]')), UNHEX(JSON_VALUE(claim, '$[1]')));
                CALL holdfast_promote(UNHEX(JSON_VALUE(claim, '$[0]')), now, '', roused);
            END WHILE;
        END IF;
    END IF;
    COMMIT;
    CALL holdfast_rouse(roused);
    SELECT SUBSTRING(reply, 2);
END $$

-- Leave the line, waiting or holding; a hold may linger. Whether it was held until now: the number of rows that an
-- uncontended release has changed, or else a row.
CREATE OR REPLACE PROCEDURE holdfast_release(n varbinary(1100), o varbinary(255), linger bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now bigint DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE done boolean DEFAULT false;
    IF linger = 0 THEN
        UPDATE holdfast_claim c SET c.owner = NULL, c.token = 0
            WHERE c.name = n AND c.place = 0 AND c.owner = o AND c.token > 0 AND c.expires > now AND NOT c.evicted
              AND NOT c.crowded;
        SET done = ROW_COUNT();
    END IF;
    IF NOT done THEN
        CALL holdfast_leave(n, o, linger);
    END IF;
END $$

CREATE OR REPLACE PROCEDURE holdfast_leave(n varbinary(1100), o varbinary(255), linger bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now, mine, seat bigint;
    DECLARE held boolean DEFAULT false;
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT c.place INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF seat IS NOT NULL THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        SELECT c.place, c.token > 0 AND c.expires > now AND NOT c.evicted INTO mine, held
            FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n AND c.owner = o FOR UPDATE;
        IF held AND linger > 0 THEN
            UPDATE holdfast_claim c SET c.owner = CONCAT('~', o), c.expires = now + linger, c.delay = 0, c.wake = 0
                WHERE c.name = n AND c.place = mine;
        ELSEIF mine IS NOT NULL THEN
            CALL holdfast_remove(n, o);
        END IF;
        CALL holdfast_promote(n, now, '', roused);
    END IF;
    COMMIT;
    IF roused <> '' THEN
        CALL holdfast_rouse(roused);
    END IF;
    SELECT held;
END $$

-- End the hold with this token. Whether there was one.
CREATE OR REPLACE PROCEDURE holdfast_evict(n varbinary(1100), t bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now, seat bigint;
    DECLARE ended boolean DEFAULT false;
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT c.place INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF seat IS NOT NULL THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        UPDATE holdfast_claim c FORCE INDEX (PRIMARY) SET c.evicted = true, c.expires = now
            WHERE c.name = n AND c.token = t AND c.token > 0 AND c.expires > now AND NOT c.evicted;
        SET ended = ROW_COUNT() > 0;
        CALL holdfast_promote(n, now, '', roused);
    END IF;
    COMMIT;
    CALL holdfast_rouse(roused);
    SELECT ended;
END $$

-- Rate limit (GCRA): 1 if allowed now or booked, and µs to wait.
CREATE OR REPLACE PROCEDURE holdfast_allow(n varbinary(1100), step bigint, burst int, cost int, reserve bigint)
    SQL SECURITY INVOKER
BEGIN
    DECLARE now, next_, wait_ bigint;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    INSERT INTO holdfast_rate (name, tat) VALUES (n, 0) ON DUPLICATE KEY UPDATE name = n;
    SELECT r.tat INTO next_ FROM holdfast_rate r WHERE r.name = n FOR UPDATE;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    SET next_ = GREATEST(next_, now) + step * cost;
    SET wait_ = GREATEST(0, next_ - step * burst - now);
    IF wait_ <= reserve THEN
        UPDATE holdfast_rate r SET r.tat = next_ WHERE r.name = n;
    END IF;
    COMMIT;
    SELECT CONCAT_WS(',', wait_ <= reserve, wait_);
END $$

-- Sleep until there is a push for these ears, or for so many quarters of a second; then take all that is there.
CREATE OR REPLACE PROCEDURE holdfast_hear(wake_ bigint, quarters int) SQL SECURITY INVOKER
BEGIN
    WHILE quarters > 0 AND NOT EXISTS (SELECT 1 FROM holdfast_push p WHERE p.wake = wake_) DO
        DO SLEEP(0.25);
        SET quarters = quarters - 1;
    END WHILE;
    START TRANSACTION;
    SELECT p.owner, p.token FROM holdfast_push p FORCE INDEX (PRIMARY) WHERE p.wake = wake_ FOR UPDATE;
    DELETE p FROM holdfast_push p FORCE INDEX (PRIMARY) WHERE p.wake = wake_;
    COMMIT;
END $$

-- Take a session lock, within so many seconds: its token, or 0.
CREATE OR REPLACE PROCEDURE holdfast_session_take(l varbinary(64), h binary(32), within_ int) SQL SECURITY INVOKER
BEGIN
    DECLARE now bigint;
    IF GET_LOCK(l, within_) = 1 THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        UPDATE holdfast_session s SET s.mark = LAST_INSERT_ID(GREATEST(s.mark + 1, now)) WHERE s.hash = h;
        IF ROW_COUNT() = 0 THEN
            INSERT INTO holdfast_session (hash, mark) VALUES (h, LAST_INSERT_ID(now));
        END IF;
        SELECT LAST_INSERT_ID();
    ELSE
        SELECT 0;
    END IF;
END $$

-- Go over the next names after this one and drop what is over: claims whose owners died, seats that host nobody and
-- whose mark is a day old (calendar time has passed it), limiters that are full again, pushes that nobody fetched.
-- Answers with the last name that it saw; NULL at the end.
CREATE OR REPLACE PROCEDURE holdfast_tidy(after_ varbinary(1100), most int) SQL SECURITY INVOKER
BEGIN
    DECLARE now bigint DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE last_, over_ varbinary(1100);
    DECLARE seat bigint;
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SELECT MAX(s.name) INTO last_ FROM (
        SELECT c.name FROM holdfast_claim c FORCE INDEX (PRIMARY)
        WHERE c.name > after_ AND c.place = 0 ORDER BY c.name LIMIT most) s;
    DELETE r FROM holdfast_rate r FORCE INDEX (PRIMARY)
        WHERE r.name > after_ AND (last_ IS NULL OR r.name <= last_) AND r.tat < now;
    DELETE FROM holdfast_session WHERE mark < now - 86400000000 LIMIT most;
    DELETE FROM holdfast_push WHERE since < now - 60000000;
    SET over_ = after_;
    tidying: WHILE over_ IS NOT NULL AND last_ IS NOT NULL DO
        SET after_ = over_, over_ = NULL, seat = NULL;
        SELECT MIN(c.name) INTO over_ FROM holdfast_claim c FORCE INDEX (PRIMARY)
            WHERE c.name > after_ AND c.name <= last_ AND (
                c.owner IS NOT NULL AND now >= c.expires + CASE WHEN c.token = 0 THEN 0
                    WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END
                OR c.place = 0 AND c.owner IS NULL AND NOT c.crowded AND c.mark < now - 86400000000);
        IF over_ IS NULL THEN
            LEAVE tidying;
        END IF;
        START TRANSACTION;
        SELECT c.place INTO seat FROM holdfast_claim c WHERE c.name = over_ AND c.place = 0 FOR UPDATE;
        IF seat IS NOT NULL THEN
            SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
            CALL holdfast_promote(over_, now, '', roused);
            DELETE c FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = over_ AND c.place = 0
                AND c.owner IS NULL AND NOT c.crowded AND c.mark < now - 86400000000;
        END IF;
        COMMIT;
    END WHILE;
    CALL holdfast_rouse(roused);
    SELECT last_;
END $$

DELIMITER ;

INSERT IGNORE INTO holdfast_meta (word, value) VALUES
    ('version', '1'),
    ('cluster', LEFT(SHA2(CONCAT(UUID(), RAND()), 256), 12));
