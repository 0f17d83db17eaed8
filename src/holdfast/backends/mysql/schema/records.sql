-- Records: small values with versions, which stay when nobody holds a lock. The rules are in `holdfast/record.py`.
--
-- 1. Whoever makes or deletes a record locks its row, or makes it, and reads the clock after that: versions grow also
--    across a delete. It waits for no other row once it has written: nobody waits in a circle. A change is one statement:
--    its version follows that of the row.
-- 2. Whoever finds a record where it wanted to make one has locked nothing, and written nothing.
-- 3. A touch locks the rows of its owner, in the order of their names.
-- 4. A record whose time is over is not there. It is removed by those who add others, two with each, so there are always
--    fewer. Rows that somebody else has locked are left out.

CREATE TABLE IF NOT EXISTS holdfast_record (
    name        varbinary(1300) NOT NULL PRIMARY KEY,
    version     bigint NOT NULL,
    owner       varbinary(255) NOT NULL,
    alive_until bigint NOT NULL,
    kept_until  bigint NOT NULL,
    keep        bigint NOT NULL,
    data        mediumblob NOT NULL,
    INDEX kept_until (kept_until)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

DELIMITER $$

-- Write if the version is the expected one (0: there is none); delete, where `data_` is NULL. Whether that was done, and
-- what is there then; of what was written only the version and how long it is alive.
CREATE OR REPLACE PROCEDURE holdfast_swap_record(n varbinary(1300), expected bigint, data_ mediumblob, owner_ varbinary(255),
    ttl bigint, keep_ bigint) SQL SECURITY INVOKER
swap: BEGIN
    DECLARE now, version_, kept_, alive_ bigint;
    DECLARE over_ varbinary(1300);
    DECLARE there_owner varbinary(255);
    DECLARE there_data mediumblob;
    DECLARE done boolean DEFAULT true;
    DECLARE left_ int DEFAULT IF(expected = 0, 2, 0);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    IF expected = 0 THEN  -- mostly there is a result: see rule 2
        SELECT r.version, r.data, r.owner, r.alive_until, r.kept_until INTO version_, there_data, there_owner, alive_, kept_
            FROM holdfast_record r WHERE r.name = n AND r.version > 0;
        IF kept_ > now THEN
            SELECT 0, version_, there_data, there_owner, GREATEST(0, alive_ - now);
            LEAVE swap;
        END IF;
    ELSEIF data_ IS NOT NULL THEN
        UPDATE holdfast_record r SET r.version = LAST_INSERT_ID(GREATEST(r.version + 1, now)), r.owner = owner_,
            r.alive_until = IF(ttl > 0, now + ttl, 0), r.kept_until = now + keep_, r.keep = keep_, r.data = data_
            WHERE r.name = n AND r.version = expected AND r.kept_until > now;
        IF ROW_COUNT() = 1 THEN
            SELECT 1, LAST_INSERT_ID(), NULL, NULL, ttl;
            LEAVE swap;
        END IF;
    END IF;
    START TRANSACTION;
    IF expected = 0 AND data_ IS NOT NULL THEN  -- a new row is at version 0 until its lock is ours
        INSERT INTO holdfast_record (name, version, owner, alive_until, kept_until, keep, data)
            VALUES (n, 0, owner_, IF(ttl > 0, now + ttl, 0), now + keep_, keep_, data_) ON DUPLICATE KEY UPDATE name = n;
    END IF;
    SELECT r.version, r.kept_until INTO version_, kept_ FROM holdfast_record r WHERE r.name = n FOR UPDATE;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    IF IF(kept_ > now, version_, 0) <> expected THEN
        SET done = false;
    ELSEIF data_ IS NULL THEN
        DELETE FROM holdfast_record WHERE name = n;
        SET version_ = NULL;
    ELSEIF version_ = 0 THEN
        SET version_ = now;
        UPDATE holdfast_record r SET r.version = version_ WHERE r.name = n;
    ELSE
        SET version_ = GREATEST(version_ + 1, now);
        UPDATE holdfast_record r SET r.version = version_, r.owner = owner_, r.alive_until = IF(ttl > 0, now + ttl, 0),
            r.kept_until = now + keep_, r.keep = keep_, r.data = data_ WHERE r.name = n;
    END IF;
    forgetting: WHILE left_ > 0 DO
        SET over_ = NULL, left_ = left_ - 1;
        SELECT r.name INTO over_ FROM holdfast_record r FORCE INDEX (kept_until)
            WHERE r.kept_until <= now AND r.name <> n ORDER BY r.kept_until LIMIT 1 FOR UPDATE SKIP LOCKED;
        IF over_ IS NULL THEN
            LEAVE forgetting;
        END IF;
        DELETE FROM holdfast_record WHERE name = over_;
    END WHILE;
    IF NOT done AND kept_ > now THEN
        SELECT 0, r.version, r.data, r.owner, GREATEST(0, r.alive_until - now) FROM holdfast_record r WHERE r.name = n FOR UPDATE;
    ELSE
        SELECT done, IF(done, version_, NULL), NULL, NULL, ttl;
    END IF;
    COMMIT;
END $$

-- Have these records live for another ttl, each if it is this owner's. `touches` is a list of name, owner, ttl, name …, in
-- the order of names, the texts in hexadecimal, with a comma behind each. For each whether it was, in one word.
CREATE OR REPLACE PROCEDURE holdfast_touch_records(touches longtext) SQL SECURITY INVOKER
BEGIN
    DECLARE now, ttl_ bigint;
    DECLARE n varbinary(1300);
    DECLARE o varbinary(255);
    DECLARE found boolean;
    DECLARE word, reply longtext DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    START TRANSACTION;
    WHILE touches <> '' DO
        SET word = SUBSTRING_INDEX(touches, ',', 1), n = UNHEX(word), touches = SUBSTRING(touches, LENGTH(word) + 2);
        SET word = SUBSTRING_INDEX(touches, ',', 1), o = UNHEX(word), touches = SUBSTRING(touches, LENGTH(word) + 2);
        SET word = SUBSTRING_INDEX(touches, ',', 1), ttl_ = word, touches = SUBSTRING(touches, LENGTH(word) + 2);
        SET found = false;
        SELECT true INTO found FROM holdfast_record r WHERE r.name = n AND r.owner = o AND r.kept_until > now FOR UPDATE;
        IF found THEN
            UPDATE holdfast_record r SET r.alive_until = now + ttl_, r.kept_until = now + r.keep WHERE r.name = n;
        END IF;
        SET reply = CONCAT(reply, found);
    END WHILE;
    COMMIT;
    SELECT reply;
END $$

DELIMITER ;
