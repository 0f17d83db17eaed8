-- Housekeeping: what is over is dropped by whoever is there, a stretch of names at a time.
--
-- More is visited than can have been added since the last time, so that names which are used once do not pile up. Where
-- one client stops, the next one goes on: the place is kept in `holdfast_meta`, because many live too briefly to get round.

DELIMITER $$

-- Go over the next names: seats that nobody uses and whose mark is a day old (calendar time has passed it; one that is
-- unrecovered stays, and so does one where that is still to be noted), dead claims
-- behind a seat, limiters that are full again, pushes that nobody fetched. Now and then over all session locks, which have
-- no order to go by. Answers with the last name that it saw; NULL at the end.
CREATE OR REPLACE PROCEDURE holdfast_tidy(most int) SQL SECURITY INVOKER
BEGIN
    DECLARE after_ varbinary(1100);
    DECLARE many int DEFAULT 8 * most;
    DECLARE now bigint DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE last_, over_ varbinary(1100);
    DECLARE seat bigint;
    DECLARE lines_ int DEFAULT 200;
    DECLARE roused text DEFAULT '';
    DECLARE told mediumblob DEFAULT '';
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SELECT COALESCE(MAX(m.value), '') INTO after_ FROM holdfast_meta m WHERE m.word = 'tidied';
    SELECT MAX(s.name), COUNT(*) = most INTO last_, seat FROM (
        SELECT c.name FROM holdfast_claim c FORCE INDEX (PRIMARY)
        WHERE c.name > after_ AND c.place = 0 ORDER BY c.name LIMIT most) s;
    IF NOT seat THEN
        SET last_ = NULL;
    END IF;
    DELETE r FROM holdfast_rate r FORCE INDEX (PRIMARY)
        WHERE r.name > after_ AND (last_ IS NULL OR r.name <= last_) AND r.tat < now;
    IF RAND() < 0.0625 THEN
        DELETE FROM holdfast_session WHERE mark < now - 86400000000 AND IS_USED_LOCK(LOWER(HEX(hash))) IS NULL LIMIT many;
        DELETE FROM holdfast_session_waiter WHERE IS_USED_LOCK(CONCAT('holdfast-session-', connection)) IS NULL LIMIT many;
        DELETE FROM holdfast_session_name WHERE since < now - 86400000000
            AND hash NOT IN (SELECT s.hash FROM holdfast_session s) LIMIT many;
    END IF;
    DELETE FROM holdfast_push WHERE since < now - 60000000;
    -- All at once, and each row as it is once it is locked: with nobody behind it, nobody is promoted by its end.
    DELETE c FROM holdfast_claim c FORCE INDEX (PRIMARY)
        WHERE c.name > after_ AND (last_ IS NULL OR c.name <= last_) AND c.place = 0 AND NOT c.crowded
          AND NOT c.unrecovered AND NOT (c.robust AND c.token > 0 AND c.owner NOT LIKE '~%')
          AND c.mark < now - 86400000000 AND (c.owner IS NULL OR now >= c.expires + CASE WHEN c.token = 0 THEN 0
              WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END);
    SET over_ = after_;
    tidying: LOOP
        SET after_ = over_, over_ = NULL, seat = NULL;
        SELECT MIN(c.name) INTO over_ FROM holdfast_claim c FORCE INDEX (PRIMARY)
            WHERE c.name > after_ AND (last_ IS NULL OR c.name <= last_) AND c.place > 0
              AND now >= c.expires + CASE WHEN c.token = 0 THEN 0
                  WHEN c.evicted THEN GREATEST(c.delay, c.ttl) ELSE c.delay END;
        IF over_ IS NULL THEN
            LEAVE tidying;
        END IF;
        START TRANSACTION;
        SELECT c.place INTO seat FROM holdfast_claim c WHERE c.name = over_ AND c.place = 0 FOR UPDATE;
        IF seat IS NOT NULL THEN
            SET now = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
            CALL holdfast_count(over_, now, true);
            CALL holdfast_promote(over_, now, '', 0, told, roused);
        END IF;
        COMMIT;
        SET lines_ = lines_ - 1;
        IF lines_ = 0 THEN
            SET last_ = over_;
            LEAVE tidying;
        END IF;
    END LOOP;
    REPLACE INTO holdfast_meta (word, value) VALUES ('tidied', COALESCE(last_, ''));
    CALL holdfast_rouse(roused);
    SELECT last_;
END $$

DELIMITER ;
