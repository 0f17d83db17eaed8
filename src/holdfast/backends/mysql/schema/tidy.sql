DELIMITER $$

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
    DELETE FROM holdfast_session WHERE mark < now - 86400000000 AND IS_USED_LOCK(LOWER(HEX(hash))) IS NULL LIMIT most;
    DELETE FROM holdfast_session_waiter WHERE IS_USED_LOCK(CONCAT('holdfast-session-', connection)) IS NULL LIMIT most;
    DELETE FROM holdfast_session_name WHERE since < now - 86400000000
        AND hash NOT IN (SELECT s.hash FROM holdfast_session s) LIMIT most;
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
