-- What becomes of a claim that stands in a line. (The renewal of a hold on its seat, and the end of a hold that nobody
-- waits for, is one plain UPDATE; see `codec.py`.)

DELIMITER $$

-- Leave the line, waiting or holding; a hold may linger. Whether it was held until now, and who of the coordinator that
-- asks (`home`) was promoted by that.
CREATE OR REPLACE PROCEDURE holdfast_release(n varbinary(1100), o varbinary(255), linger bigint, home bigint)
    SQL SECURITY INVOKER
BEGIN
    DECLARE now, mine, token_, quiet_ bigint;
    DECLARE seat, evicted_ boolean;
    DECLARE held boolean DEFAULT false;
    DECLARE told mediumblob DEFAULT '';
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT c.crowded, c.quiet INTO seat, quiet_ FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF seat IS NOT NULL THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        IF NOT seat OR quiet_ IS NULL OR quiet_ <= now THEN
            CALL holdfast_count(n, now, false);
        END IF;
        CALL holdfast_find(n, o, now, mine, token_, evicted_, held);
        IF held AND linger > 0 THEN
            UPDATE holdfast_claim c SET c.owner = CONCAT('~', o), c.expires = now + linger, c.delay = 0, c.wake = 0
                WHERE c.name = n AND c.place = mine;
            UPDATE holdfast_claim c SET c.quiet = LEAST(c.quiet, now + linger),
                c.note = IF(c.unrecovered, c.note, CONCAT('released:', token_, ':', o)) WHERE c.name = n AND c.place = 0;
        ELSEIF mine IS NOT NULL THEN
            CALL holdfast_drop(n, mine, now, true);
        END IF;
        CALL holdfast_promote(n, now, '', home, told, roused);
    END IF;
    COMMIT;
    IF roused <> '' THEN
        CALL holdfast_rouse(roused);
    END IF;
    SELECT CONCAT(held, told);
END $$

-- Extend holds, each by its token, wherever they stand. `claims` is an array of [name, owner, token], text in
-- hexadecimal, in the order of names. For each: held, refused, evicted or expired.
CREATE OR REPLACE PROCEDURE holdfast_renew(claims longtext) SQL SECURITY INVOKER
BEGIN
    DECLARE now, mine, place_, token_ bigint;
    DECLARE evicted_, live boolean;
    DECLARE many int DEFAULT JSON_LENGTH(claims);
    DECLARE i, seat int DEFAULT 0;
    DECLARE claim, reply text DEFAULT '';
    DECLARE n varbinary(1100);
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    WHILE i < many DO
        SET claim = JSON_EXTRACT(claims, CONCAT('$[', i, ']')), i = i + 1, n = UNHEX(JSON_VALUE(claim, '$[0]')),
            mine = NULL, seat = NULL;
        SELECT 1 INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        IF seat IS NOT NULL THEN
            SELECT c.place, c.token, c.evicted, c.expires > now INTO mine, token_, evicted_, live FROM holdfast_claim c
                WHERE c.name = n AND c.place = 0 AND c.owner = UNHEX(JSON_VALUE(claim, '$[1]')) FOR UPDATE;
        END IF;
        IF seat IS NOT NULL AND mine IS NULL THEN
            SET place_ = NULL;
            SELECT c.place INTO place_ FROM holdfast_claim c FORCE INDEX (queued)
                WHERE c.queued = UNHEX(JSON_VALUE(claim, '$[1]')) AND c.name = n LIMIT 1;
            -- With a lock: under REPEATABLE READ the snapshot may be that of a claim before it, older than this seat's lock.
            SELECT c.place, c.token, c.evicted, c.expires > now INTO mine, token_, evicted_, live FROM holdfast_claim c
                WHERE c.name = n AND c.place = place_ AND c.queued = UNHEX(JSON_VALUE(claim, '$[1]')) FOR UPDATE;
        END IF;
        IF mine IS NULL OR token_ = 0 OR token_ <> JSON_VALUE(claim, '$[2]') THEN
            SET reply = CONCAT(reply, ',refused');
        ELSEIF evicted_ THEN
            SET reply = CONCAT(reply, ',evicted');
        ELSEIF NOT live THEN
            SET reply = CONCAT(reply, ',expired');
        ELSE
            UPDATE holdfast_claim c SET c.expires = now + c.ttl WHERE c.name = n AND c.place = mine;
            SET reply = CONCAT(reply, ',held');
        END IF;
    END WHILE;
    COMMIT;
    SELECT SUBSTRING(reply, 2);
END $$

-- End the hold with this token. Whether there was one.
CREATE OR REPLACE PROCEDURE holdfast_evict(n varbinary(1100), t bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now, seat, mine bigint;
    DECLARE ended, robust_ boolean DEFAULT false;
    DECLARE owner_ varbinary(256);
    DECLARE told mediumblob DEFAULT '';
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT c.place INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF seat IS NOT NULL THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        SELECT c.place, c.owner, c.robust INTO mine, owner_, robust_ FROM holdfast_claim c FORCE INDEX (PRIMARY)
            WHERE c.name = n AND c.token = t AND c.token > 0 AND c.expires > now AND NOT c.evicted LIMIT 1;
        UPDATE holdfast_claim c SET c.evicted = true, c.expires = now WHERE c.name = n AND c.place = mine;
        SET ended = mine IS NOT NULL;
        CALL holdfast_count(n, now, true);
        IF ended AND owner_ NOT LIKE '~%' THEN
            UPDATE holdfast_claim c SET c.note = CONCAT('evicted:', t, ':', owner_), c.unrecovered = c.unrecovered OR robust_
                WHERE c.name = n AND c.place = 0;
        END IF;
        CALL holdfast_promote(n, now, '', 0, told, roused);
    END IF;
    COMMIT;
    CALL holdfast_rouse(roused);
    SELECT ended;
END $$

-- The holder with this token has put things right: the name is not unrecovered any more. Whether it holds it.
CREATE OR REPLACE PROCEDURE holdfast_recover(n varbinary(1100), o varbinary(255), t bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE now, seat, token_ bigint;
    DECLARE live boolean DEFAULT false;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    SELECT c.place INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF seat IS NOT NULL THEN
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        SELECT c.token, c.expires > now AND NOT c.evicted INTO token_, live
            FROM holdfast_claim c WHERE c.name = n AND c.place = 0 AND c.owner = o FOR UPDATE;
        IF token_ IS NULL THEN
            SELECT c.token, c.expires > now AND NOT c.evicted INTO token_, live
                FROM holdfast_claim c FORCE INDEX (queued) WHERE c.queued = o AND c.name = n LIMIT 1;
        END IF;
        SET live = live AND token_ > 0 AND token_ = t;
        IF live THEN
            UPDATE holdfast_claim c SET c.unrecovered = false WHERE c.name = n AND c.place = 0;
        END IF;
    END IF;
    COMMIT;
    SELECT live;
END $$

DELIMITER ;
