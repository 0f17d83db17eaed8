-- The line of one name. In each of these the seat is locked.

DELIMITER $$

-- Drop what is over among the holds, and count: for a seat that is not crowded, or whose `quiet` has passed; with `all_`,
-- look at those who wait, too. Holds stand before the first who waits, unless some have overtaken. Who held until its time
-- was over is noted: of several, the last one to be granted. Who has let go and lingers ("~") has left its note before, and
-- so has who was evicted.
CREATE OR REPLACE PROCEDURE holdfast_count(n varbinary(1100), now bigint, all_ boolean) SQL SECURITY INVOKER
BEGIN
    DECLARE until_, over_, rows_, holds_, used_, quiet_, first_, last_, overtakers_ bigint;
    DECLARE ended, held, token_ bigint DEFAULT 0;
    DECLARE crowded_, robust_ boolean;
    DECLARE unrecovered_ boolean DEFAULT false;
    DECLARE owner_, who varbinary(255);
    SELECT c.crowded, IF(all_ OR c.quiet IS NULL OR c.overtakers > 0, 9223372036854775807, c.first),
           IF(c.token > 0 AND NOT c.evicted AND c.owner NOT LIKE '~%' AND now >= c.expires + c.delay, c.token, 0)
        INTO crowded_, until_, held FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    UPDATE holdfast_claim c SET
        c.note = IF(held > 0, CONCAT('expired:', held, ':', c.owner), c.note),
        c.unrecovered = c.unrecovered OR held > 0 AND c.robust, c.owner = NULL, c.token = 0
        WHERE c.name = n AND c.place = 0 AND c.owner IS NOT NULL
          AND now >= c.expires + CASE WHEN c.token = 0 THEN 0 WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END;
    dropping: WHILE crowded_ DO
        SET over_ = NULL;
        SELECT c.place, IF(c.evicted OR c.owner LIKE '~%', 0, c.token), c.owner, c.robust
            INTO over_, token_, owner_, robust_ FROM holdfast_claim c FORCE INDEX (PRIMARY)
            WHERE c.name = n AND c.place > 0 AND c.place < until_ AND now >= c.expires + CASE WHEN c.token = 0 THEN 0 WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END LIMIT 1;
        IF over_ IS NULL THEN
            LEAVE dropping;
        END IF;
        DELETE FROM holdfast_claim WHERE name = n AND place = over_;
        SET ended = ended + 1, unrecovered_ = unrecovered_ OR token_ > 0 AND robust_;
        IF token_ > held THEN
            SET held = token_, who = owner_;
        END IF;
    END WHILE;
    IF crowded_ THEN
        SELECT COUNT(*), COALESCE(SUM(c.token > 0), 0), MAX(c.place),
               COALESCE(SUM(IF(c.token > 0 AND c.expires + c.delay > now, c.weight, 0)), 0),
               MIN(IF(c.token = 0, NULL, c.expires + IF(c.expires + c.delay > now, c.delay, GREATEST(c.delay, c.ttl)))),
               MIN(IF(c.token = 0, c.place, NULL)), COALESCE(SUM(NOT c.fair), 0)
            INTO rows_, holds_, last_, used_, quiet_, first_, overtakers_
            FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n AND c.place > 0 AND c.place < until_;
    ELSE
        SET rows_ = 0, holds_ = 0, used_ = 0, overtakers_ = 0, until_ = 9223372036854775807;
    END IF;
    UPDATE holdfast_claim c SET
        c.holds = holds_ + (c.token > 0),
        c.used = used_ + IF(c.token > 0 AND c.expires + c.delay > now, c.weight, 0),
        c.quiet = LEAST(COALESCE(quiet_, 9223372036854775807),
                        CASE WHEN c.token = 0 THEN 9223372036854775807 WHEN c.expires + c.delay > now THEN c.expires + c.delay
                             ELSE c.expires + GREATEST(c.delay, c.ttl) END),
        c.last = IF(until_ < 9223372036854775807, c.last, IF(rows_ = 0, 0, GREATEST(COALESCE(c.last, 0), last_))),
        c.behind = IF(until_ < 9223372036854775807, c.behind - ended, rows_),
        c.overtakers = IF(until_ < 9223372036854775807, c.overtakers, overtakers_),
        c.first = CASE WHEN until_ < 9223372036854775807 THEN c.first WHEN c.owner IS NOT NULL AND c.token = 0 THEN 0
                       ELSE COALESCE(first_, last_ + 1, 1) END,
        c.note = IF(who IS NULL, c.note, CONCAT('expired:', held, ':', who)), c.unrecovered = c.unrecovered OR unrecovered_,
        c.crowded = c.behind > 0
        WHERE c.name = n AND c.place = 0;
END $$

-- Count, if that must be; see whether a line can be entered with this capacity: `other` is the one that it has, if it
-- cannot, else 0.
CREATE OR REPLACE PROCEDURE holdfast_open(n varbinary(1100), wanted int, now bigint, OUT other int) SQL SECURITY INVOKER
BEGIN
    DECLARE capacity_ int;
    DECLARE used_, front_ bigint;
    DECLARE fresh boolean;
    SELECT c.capacity, c.crowded AND c.quiet > now INTO capacity_, fresh
        FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF fresh IS NOT TRUE THEN
        CALL holdfast_count(n, now, false);
    END IF;
    SET other = 0;
    IF capacity_ <> wanted THEN
        CALL holdfast_front(n, now, front_);
        SELECT c.used INTO used_ FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
        IF used_ > 0 OR front_ IS NOT NULL THEN
            SET other = capacity_;
        ELSE
            UPDATE holdfast_claim c SET c.capacity = wanted WHERE c.name = n AND c.place = 0;
        END IF;
    END IF;
END $$

-- The first who waits; those before it whose time is over are dropped. NULL if nobody waits. It was counted.
CREATE OR REPLACE PROCEDURE holdfast_front(n varbinary(1100), now bigint, OUT front_ bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE began, first_, until_ bigint;
    SELECT c.first, c.first INTO began, first_ FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    looking: LOOP
        SET front_ = NULL;
        SELECT c.place, c.expires INTO front_, until_ FROM holdfast_claim c FORCE INDEX (PRIMARY)
            WHERE c.name = n AND c.place >= first_ AND c.owner IS NOT NULL AND c.token = 0 ORDER BY c.place LIMIT 1;
        IF front_ IS NULL OR until_ > now THEN
            LEAVE looking;
        END IF;
        CALL holdfast_drop(n, front_, now, false);
        SET first_ = front_ + 1;
    END LOOP;
    IF front_ > began OR front_ IS NULL THEN
        UPDATE holdfast_claim c SET c.first = COALESCE(front_, c.last + 1) WHERE c.name = n AND c.place = 0;
    END IF;
END $$

-- Take the claim at this place out of its line, and out of the counts, whatever it is. It was counted. `told`: its owner
-- knew of its grant, so how it ended is noted.
CREATE OR REPLACE PROCEDURE holdfast_drop(n varbinary(1100), at_ bigint, now bigint, told boolean) SQL SECURITY INVOKER
BEGIN
    DECLARE held, counts int;
    DECLARE expired_, robust_ boolean;
    DECLARE note_ varbinary(320);
    SELECT c.token > 0, IF(c.token > 0 AND c.expires + c.delay > now, c.weight, 0), c.expires <= now, c.robust,
           IF(told AND c.token > 0 AND NOT c.evicted, CONCAT(IF(c.expires > now, 'released:', 'expired:'), c.token, ':', c.owner), NULL)
        INTO held, counts, expired_, robust_, note_
        FROM holdfast_claim c WHERE c.name = n AND c.place = at_ FOR UPDATE;
    IF at_ > 0 THEN
        DELETE FROM holdfast_claim WHERE name = n AND place = at_;
    END IF;
    UPDATE holdfast_claim c SET
        c.first = GREATEST(c.first, at_ = 0),
        c.behind = c.behind - (at_ > 0), c.crowded = c.behind > 0,
        c.holds = c.holds - held, c.used = c.used - counts, c.quiet = IF(c.holds = 0, 9223372036854775807, c.quiet),
        c.note = IF(note_ IS NULL OR c.unrecovered AND NOT expired_, c.note, note_),
        c.unrecovered = c.unrecovered OR note_ IS NOT NULL AND expired_ AND robust_,
        c.owner = IF(at_ = 0, NULL, c.owner), c.token = IF(at_ = 0, 0, c.token)
        WHERE c.name = n AND c.place = 0;
END $$

-- Where an owner stands; NULL if nowhere, or if it has lost its place.
CREATE OR REPLACE PROCEDURE holdfast_find(
    n varbinary(1100), o varbinary(255), now bigint, OUT mine bigint, OUT token_ bigint, OUT evicted_ boolean, OUT live boolean
) SQL SECURITY INVOKER
BEGIN
    DECLARE expires_ bigint;
    SET mine = NULL;
    SELECT c.place, c.token, c.evicted, c.expires INTO mine, token_, evicted_, expires_
        FROM holdfast_claim c WHERE c.name = n AND c.place = 0 AND c.owner = o FOR UPDATE;
    IF mine IS NULL THEN
        SELECT c.place, c.token, c.evicted, c.expires INTO mine, token_, evicted_, expires_
            FROM holdfast_claim c FORCE INDEX (queued) WHERE c.queued = o AND c.name = n LIMIT 1;
    END IF;
    IF mine IS NULL THEN
        SET token_ = 0, evicted_ = false, live = false;
    ELSEIF token_ = 0 AND expires_ <= now THEN
        CALL holdfast_drop(n, mine, now, false);
        SET mine = NULL, live = false;
    ELSE
        SET live = token_ > 0 AND expires_ > now AND NOT evicted_;
    END IF;
END $$

-- Grant, in order, whatever fits now; and tell those who are told by a push: all but `asker`, who reads the reply. Who
-- waits in the coordinator that asks (`home`) is told by the reply, ' owner token note' for each, which is added to `told`; for
-- others a push is left, and their ears are added to `roused`. It was counted.
CREATE OR REPLACE PROCEDURE holdfast_promote(
    n varbinary(1100), now bigint, asker varbinary(255), home bigint, INOUT told mediumblob, INOUT roused text
) SQL SECURITY INVOKER
BEGIN
    DECLARE mark_, first_, last_, holds_, used_, quiet_, at_, next_, wake_, until_, end_, overtakers_ bigint;
    DECLARE capacity_, weight_ int;
    DECLARE blocked boolean DEFAULT false;
    DECLARE owner_ varbinary(255);
    DECLARE note_ varbinary(320);
    SELECT c.mark, c.first, c.last, c.holds, c.used, c.quiet, c.overtakers, c.capacity, c.note
        INTO mark_, first_, last_, holds_, used_, quiet_, overtakers_, capacity_, note_
        FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    SET at_ = first_ - 1;
    granting: WHILE used_ < capacity_ DO
        SET next_ = NULL;
        SELECT c.place, c.owner, c.weight, c.wake, c.expires, c.expires + c.delay
            INTO next_, owner_, weight_, wake_, until_, end_ FROM holdfast_claim c FORCE INDEX (PRIMARY)
            WHERE c.name = n AND c.place > at_ AND c.owner IS NOT NULL AND c.token = 0
              AND (NOT blocked OR NOT c.fair AND c.weight <= capacity_ - used_)
            ORDER BY c.place LIMIT 1;
        IF next_ IS NULL THEN
            SET first_ = IF(blocked, first_, last_ + 1);
            LEAVE granting;
        END IF;
        SET at_ = next_;
        IF until_ <= now THEN
            CALL holdfast_drop(n, at_, now, false);
        ELSEIF weight_ > capacity_ - used_ THEN
            SET first_ = IF(blocked, first_, at_), blocked = true;
            IF overtakers_ = 0 THEN
                LEAVE granting;
            END IF;
        ELSE
            SET mark_ = GREATEST(mark_ + 1, now), holds_ = holds_ + 1, used_ = used_ + weight_, quiet_ = LEAST(quiet_, end_);
            UPDATE holdfast_claim c SET c.token = mark_, c.since = now WHERE c.name = n AND c.place = at_;
            IF wake_ = 0 OR owner_ = asker THEN
                BEGIN END;
            ELSEIF wake_ = home THEN
                SET told = CONCAT(told, ' ', owner_, ' ', mark_, ' ', COALESCE(note_, '-'));
            ELSE
                INSERT INTO holdfast_push (wake, owner, token, since, note) VALUES (wake_, owner_, mark_, now, note_)
                    ON DUPLICATE KEY UPDATE token = mark_, since = now, note = note_;
                SET roused = CONCAT(roused, wake_, ',');
            END IF;
        END IF;
        SET first_ = IF(blocked, first_, at_ + 1);
    END WHILE;
    UPDATE holdfast_claim c SET c.mark = mark_, c.first = first_, c.holds = holds_, c.used = used_, c.quiet = quiet_
        WHERE c.name = n AND c.place = 0;
END $$

DELIMITER ;
