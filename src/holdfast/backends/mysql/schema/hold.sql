-- What ends a claim: its owner, or an operator. (A renewal, and the end of a
-- hold that nobody waits for, is one plain UPDATE; see `codec.py`.)

DELIMITER $$

-- Leave the line, waiting or holding; a hold may linger. Whether it was held until now.
CREATE OR REPLACE PROCEDURE holdfast_release(n varbinary(1100), o varbinary(255), linger bigint) SQL SECURITY INVOKER
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

DELIMITER ;
