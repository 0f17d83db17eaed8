-- The line of one name. In each of these the seat is locked.

DELIMITER $$

-- Drop what is over. The seat is locked.
CREATE OR REPLACE PROCEDURE holdfast_sweep(n varbinary(1100), now bigint) SQL SECURITY INVOKER
BEGIN
    DELETE c FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n AND c.place + 0 > 0 AND now >= c.expires
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
                WHERE c.name = n AND c.place + 0 > at_ AND c.owner IS NOT NULL AND c.token = 0
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

-- Drop what is over, and see whether a line can be entered with this capacity: `other` is the one that it has, if it
-- cannot, else 0. The seat is locked.
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
    DELETE c FROM holdfast_claim c FORCE INDEX (PRIMARY) WHERE c.name = n AND c.owner = o AND c.place + 0 > 0;
    UPDATE holdfast_claim c SET c.owner = NULL, c.token = 0 WHERE c.name = n AND c.place = 0 AND c.owner = o;
END $$

DELIMITER ;
