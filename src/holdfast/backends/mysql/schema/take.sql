-- Take: one name, or several in one step.

DELIMITER $$

-- Enter one line, or find one's own place in it again; it was opened. `old`: the owner stood there before. If it waits:
-- when to look again (µs), how many stand before it, and the mark of the name. If it is granted: the note of the name.
CREATE OR REPLACE PROCEDURE holdfast_step(
    n varbinary(1100), o varbinary(255), weight_ int, fair_ boolean, ttl_ bigint, patience_ bigint, delay_ bigint,
    robust_ boolean, queue boolean, wake_ bigint, actor_ varbinary(255), mode_ varbinary(64), host_ varbinary(255),
    pid_ int, now bigint, OUT token_ bigint, OUT after_ bigint, OUT ahead bigint, OUT mark_ bigint,
    OUT note_ varbinary(320), OUT old boolean, INOUT roused text
) SQL SECURITY INVOKER
BEGIN
    DECLARE mine, front_, last_, behind_, holds_, used_, capacity_, quiet_ bigint;
    DECLARE evicted_, live boolean;
    DECLARE seated varbinary(256);
    DECLARE told mediumblob DEFAULT '';
    CALL holdfast_find(n, o, now, mine, token_, evicted_, live);
    SET after_ = 0, ahead = 0, mark_ = 0, note_ = '', old = mine IS NOT NULL AND NOT evicted_;
    IF evicted_ THEN  -- its hold is over, but for its delay; who comes again stands at the end
        UPDATE holdfast_claim c SET c.owner = CONCAT('~', c.owner) WHERE c.name = n AND c.place = mine;
        SET mine = NULL, token_ = 0;
    END IF;
    SELECT c.owner, c.last, c.behind, c.used, c.capacity INTO seated, last_, behind_, used_, capacity_
        FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF mine IS NOT NULL THEN
        UPDATE holdfast_claim c SET c.wake = wake_, c.expires = now + IF(c.token > 0, c.ttl, c.patience)
            WHERE c.name = n AND c.place = mine;
    ELSEIF queue OR weight_ <= capacity_ - used_ THEN
        SET mine = IF(behind_ > 0, last_ + 1, seated IS NOT NULL);
        INSERT INTO holdfast_claim (name, place, owner, weight, fair, ttl, patience, delay, since, expires, wake,
                                    actor, mode, host, pid, robust)
        VALUES (n, mine, o, weight_, fair_, ttl_, patience_, delay_, now, now + patience_, wake_, actor_, mode_, host_, pid_,
                robust_)
        ON DUPLICATE KEY UPDATE
            owner = o, token = 0, evicted = false, weight = weight_, fair = fair_, ttl = ttl_, patience = patience_,
            delay = delay_, since = now, expires = now + patience_, wake = wake_, actor = actor_, mode = mode_,
            host = host_, pid = pid_, robust = robust_;
        UPDATE holdfast_claim c SET
            c.first = IF(behind_ = 0, LEAST(c.first, mine), c.first), c.last = mine,
            c.overtakers = IF(behind_ = 0 AND mine > 0, NOT c.fair, c.overtakers) + (NOT fair_),
            c.behind = behind_ + (mine > 0), c.crowded = c.behind > 0
            WHERE c.name = n AND c.place = 0;
    END IF;
    IF used_ < capacity_ THEN
        CALL holdfast_promote(n, now, o, 0, told, roused);
        IF token_ = 0 AND mine IS NOT NULL THEN  -- if it has been promoted just now: its owner is asking, so it is good for a ttl
            UPDATE holdfast_claim c SET c.expires = now + c.ttl WHERE c.name = n AND c.place = mine AND c.token > 0;
            SELECT c.token INTO token_ FROM holdfast_claim c WHERE c.name = n AND c.place = mine FOR UPDATE;
        END IF;
    END IF;
    IF token_ = 0 AND NOT queue THEN
        IF mine IS NOT NULL THEN
            CALL holdfast_drop(n, mine, now, false);
        END IF;
    ELSEIF token_ = 0 THEN
        CALL holdfast_front(n, now, front_);
        SELECT c.mark, c.holds, c.quiet INTO mark_, holds_, quiet_
            FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
        SET after_ = patience_ DIV 3, ahead = holds_ + mine - front_;
        IF front_ = mine AND holds_ > 0 THEN  -- the first in line looks when a hold may have ended
            SET after_ = LEAST(after_, GREATEST(1000, quiet_ - now + 500));
        END IF;
    ELSE
        SELECT COALESCE(c.note, '') INTO note_ FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    END IF;
END $$

-- Take: enter a line, or only find out (`queue` off). Answers, with commas: token (0: not granted), look again after (µs),
-- how many stand before it, the capacity if it did not match (else 0), the mark of the name for one that waits, and the
-- note of the name for one that is granted (empty: there is none).
CREATE OR REPLACE PROCEDURE holdfast_take(
    n varbinary(1100), o varbinary(255), weight_ int, capacity_ int, fair_ boolean, ttl_ bigint, patience_ bigint,
    delay_ bigint, robust_ boolean, queue boolean, wake_ bigint, actor_ varbinary(255), mode_ varbinary(64),
    host_ varbinary(255), pid_ int
) SQL SECURITY INVOKER
BEGIN
    DECLARE now, token_, after_, ahead, mark_ bigint DEFAULT 0;
    DECLARE note_ varbinary(320) DEFAULT '';
    DECLARE other int DEFAULT 0;
    DECLARE old boolean;
    DECLARE roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    IF NOT EXISTS (SELECT 1 FROM holdfast_claim c WHERE c.name = n AND c.place = 0) THEN  -- a new name
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        INSERT IGNORE INTO holdfast_claim (name, place, mark, token, owner, weight, capacity, fair, ttl, patience, delay,
                                           since, expires, actor, mode, host, pid, robust)
        VALUES (n, 0, now, now, o, weight_, capacity_, fair_, ttl_, patience_, delay_, now, now + ttl_, actor_, mode_,
                host_, pid_, robust_);
        IF ROW_COUNT() = 1 THEN
            SET token_ = now;
        END IF;
    END IF;
    IF token_ = 0 THEN
        START TRANSACTION;
        INSERT INTO holdfast_claim (name, place) VALUES (n, 0) ON DUPLICATE KEY UPDATE place = 0;
        SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
        CALL holdfast_open(n, capacity_, now, other);
        IF other = 0 THEN
            CALL holdfast_step(n, o, weight_, fair_, ttl_, patience_, delay_, robust_, queue, wake_, actor_, mode_, host_,
                               pid_, now, token_, after_, ahead, mark_, note_, old, roused);
        END IF;
        COMMIT;
        IF roused <> '' THEN
            CALL holdfast_rouse(roused);
        END IF;
    END IF;
    SELECT CONCAT_WS(',', token_, after_, ahead, other, mark_, note_);
END $$

-- Take several: all lines are entered in one step. `claims` is an array of [name, owner, weight, capacity, fair, ttl,
-- patience, delay, robust, actor, mode], text in hexadecimal. The six words of each.
CREATE OR REPLACE PROCEDURE holdfast_take_all(
    claims longtext, queue boolean, wake_ bigint, host_ varbinary(255), pid_ int
) SQL SECURITY INVOKER
BEGIN
    DECLARE now, token_, after_, ahead, mark_, mine bigint DEFAULT 0;
    DECLARE told, reply mediumblob DEFAULT '';
    DECLARE note_ varbinary(320);
    DECLARE many int DEFAULT JSON_LENGTH(claims);
    DECLARE i, other int DEFAULT 0;
    DECLARE old boolean;
    DECLARE mismatch, refused boolean DEFAULT false;
    DECLARE claim text;
    DECLARE entered, roused text DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    INSERT INTO holdfast_claim (name, place)
        SELECT UNHEX(a.n), 0 FROM JSON_TABLE(claims, '$[*]' COLUMNS (n varchar(2200) PATH '$[0]')) a ORDER BY UNHEX(a.n)
        ON DUPLICATE KEY UPDATE place = 0;
    SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    WHILE i < many DO
        SET claim = JSON_EXTRACT(claims, CONCAT('$[', i, ']')), i = i + 1;
        CALL holdfast_open(UNHEX(JSON_VALUE(claim, '$[0]')), JSON_VALUE(claim, '$[3]'), now, other);
        SET mismatch = mismatch OR other <> 0, reply = CONCAT_WS(',', reply, 0, 0, 0, other, 0, '');
    END WHILE;
    IF NOT mismatch THEN
        SET i = 0, reply = '';
        WHILE i < many DO
            SET claim = JSON_EXTRACT(claims, CONCAT('$[', i, ']')), i = i + 1;
            CALL holdfast_step(
                UNHEX(JSON_VALUE(claim, '$[0]')), UNHEX(JSON_VALUE(claim, '$[1]')), JSON_VALUE(claim, '$[2]'),
                JSON_VALUE(claim, '$[4]'), JSON_VALUE(claim, '$[5]'), JSON_VALUE(claim, '$[6]'), JSON_VALUE(claim, '$[7]'),
                JSON_VALUE(claim, '$[8]'), queue, wake_, UNHEX(JSON_VALUE(claim, '$[9]')), UNHEX(JSON_VALUE(claim, '$[10]')),
                host_, pid_, now, token_, after_, ahead, mark_, note_, old, roused);
            SET refused = refused OR token_ = 0, reply = CONCAT_WS(',', reply, token_, after_, ahead, 0, mark_, note_);
            IF token_ > 0 AND NOT old THEN
                SET entered = CONCAT(entered, i, ',');
            END IF;
        END WHILE;
        IF refused AND NOT queue THEN  -- all or none
            SET reply = REPEAT(',0,0,0,0,0,', many);
            WHILE entered <> '' DO
                SET claim = JSON_EXTRACT(claims, CONCAT('$[', SUBSTRING_INDEX(entered, ',', 1) - 1, ']')),
                    entered = SUBSTRING(entered, LOCATE(',', entered) + 1);
                CALL holdfast_find(UNHEX(JSON_VALUE(claim, '$[0]')), UNHEX(JSON_VALUE(claim, '$[1]')), now, mine, token_, old, old);
                CALL holdfast_drop(UNHEX(JSON_VALUE(claim, '$[0]')), mine, now, false);
                CALL holdfast_promote(UNHEX(JSON_VALUE(claim, '$[0]')), now, '', 0, told, roused);
            END WHILE;
        END IF;
    END IF;
    COMMIT;
    CALL holdfast_rouse(roused);
    SELECT SUBSTRING(reply, 2);
END $$

DELIMITER ;
