DELIMITER $$

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

DELIMITER ;
