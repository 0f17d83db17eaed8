-- What one coordinator asks for many who wait in it. `claims` is a list of name, owner, name, owner …, in hexadecimal, with a
-- comma behind each, in the order of names; a name that is that of the claim before is left out.

DELIMITER $$

-- Lock the seats of these claims. Answers with the time after that.
CREATE OR REPLACE PROCEDURE holdfast_lock_all(claims longtext, OUT now bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE seat bigint;
    WHILE claims <> '' DO
        IF LEFT(claims, 1) <> ',' THEN
            SELECT c.place INTO seat FROM holdfast_claim c
                WHERE c.name = UNHEX(SUBSTRING_INDEX(claims, ',', 1)) AND c.place = 0 FOR UPDATE;
        END IF;
        SET claims = SUBSTRING(claims, LENGTH(SUBSTRING_INDEX(claims, ',', 2)) + 2);
    END WHILE;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
END $$

-- Keep these places for another patience. For each the five numbers of a take; those who have no place behind a seat, or do
-- not wait any more, have 0 for all five: each of them is to ask by itself. Then whom of this coordinator it has promoted.
CREATE OR REPLACE PROCEDURE holdfast_look_all(claims longtext, home bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now, mine, patience_, front_, holds_, quiet_, mark_, used_ bigint;
    DECLARE capacity_ int;
    DECLARE fresh boolean;
    DECLARE n varbinary(1100);
    DECLARE o varbinary(255);
    DECLARE word longtext;
    DECLARE reply longtext DEFAULT '';
    DECLARE told mediumblob DEFAULT '';
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    CALL holdfast_lock_all(claims, now);
    WHILE claims <> '' DO
        SET word = SUBSTRING_INDEX(claims, ',', 1), claims = SUBSTRING(claims, LENGTH(word) + 2);
        IF word <> '' THEN
            SET n = UNHEX(word), fresh = NULL, front_ = NULL;
            SELECT c.crowded AND c.quiet > now INTO fresh FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
            IF fresh IS NOT TRUE THEN
                CALL holdfast_count(n, now, false);
            END IF;
            SET used_ = NULL;
            SELECT c.used, c.capacity INTO used_, capacity_ FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
            IF used_ < capacity_ THEN  -- first: whoever is promoted is told a token above the mark of its last look
                CALL holdfast_promote(n, now, '', home, told, roused);
            END IF;
            CALL holdfast_front(n, now, front_);
            SELECT c.mark, c.holds, c.quiet INTO mark_, holds_, quiet_
                FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
        END IF;
        SET word = SUBSTRING_INDEX(claims, ',', 1), claims = SUBSTRING(claims, LENGTH(word) + 2), o = UNHEX(word), mine = NULL;
        SELECT c.place, c.patience INTO mine, patience_ FROM holdfast_claim c FORCE INDEX (queued)
            WHERE c.queued = o AND c.name = n AND c.token = 0 AND c.expires > now LIMIT 1;
        IF mine IS NULL THEN
            SET reply = CONCAT(reply, ',0,0,0,0,0');
        ELSE
            UPDATE holdfast_claim c SET c.wake = home, c.expires = now + c.patience WHERE c.name = n AND c.place = mine;
            SET reply = CONCAT_WS(',', reply, 0, IF(front_ = mine AND holds_ > 0,
                LEAST(patience_ DIV 3, GREATEST(1000, quiet_ - now + 500)), patience_ DIV 3), holds_ + mine - front_, 0, mark_);
        END IF;
    END WHILE;
    COMMIT;
    IF roused <> '' THEN
        CALL holdfast_rouse(roused);
    END IF;
    SELECT CONCAT(SUBSTRING(reply, 2), told);
END $$

-- Leave, waiting or holding; whoever may follow is promoted when all have left. For each whether it was held until now, in
-- one word; then whom of this coordinator it has promoted.
CREATE OR REPLACE PROCEDURE holdfast_leave_all(claims longtext, home bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now, mine, token_ bigint;
    DECLARE fresh, evicted_, held boolean;
    DECLARE n varbinary(1100);
    DECLARE word longtext;
    DECLARE reply longtext DEFAULT '';
    DECLARE told mediumblob DEFAULT '';
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    CALL holdfast_lock_all(claims, now);
    WHILE claims <> '' DO
        SET word = SUBSTRING_INDEX(claims, ',', 1), claims = SUBSTRING(claims, LENGTH(word) + 2);
        IF word <> '' THEN
            SET n = UNHEX(word), fresh = NULL;
            SELECT c.crowded AND c.quiet > now INTO fresh FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
            IF fresh IS NOT TRUE THEN
                CALL holdfast_count(n, now, false);
            END IF;
        END IF;
        SET word = SUBSTRING_INDEX(claims, ',', 1), claims = SUBSTRING(claims, LENGTH(word) + 2);
        CALL holdfast_find(n, UNHEX(word), now, mine, token_, evicted_, held);
        IF mine IS NOT NULL THEN
            CALL holdfast_drop(n, mine, now, true);
        END IF;
        SET reply = CONCAT(reply, held);
        IF LEFT(claims, 1) <> ',' THEN  -- the last one of its name
            CALL holdfast_promote(n, now, '', home, told, roused);
        END IF;
    END WHILE;
    COMMIT;
    IF roused <> '' THEN
        CALL holdfast_rouse(roused);
    END IF;
    SELECT CONCAT(reply, told);
END $$

DELIMITER ;
