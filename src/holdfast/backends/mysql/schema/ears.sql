-- How a waiter hears that its turn has come.

DELIMITER $$

-- After the commit: rouse the ears that a push has come for. Who may not, or finds them gone, leaves it at that.
CREATE OR REPLACE PROCEDURE holdfast_rouse(roused text) SQL SECURITY INVOKER
BEGIN
    DECLARE ears bigint;
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
    WHILE roused <> '' DO
        SET ears = IS_USED_LOCK(CONCAT('holdfast-ears-', SUBSTRING_INDEX(roused, ',', 1)));
        SET roused = SUBSTRING(roused, LOCATE(',', roused) + 1);
        IF ears IS NOT NULL AND ears <> CONNECTION_ID() THEN
            KILL QUERY ears;
        END IF;
    END WHILE;
END $$

-- Sleep until there is a push for these ears, or for so many quarters of a second; then take all that is there.
CREATE OR REPLACE PROCEDURE holdfast_hear(wake_ bigint, quarters int) SQL SECURITY INVOKER
BEGIN
    WHILE quarters > 0 AND NOT EXISTS (SELECT 1 FROM holdfast_push p WHERE p.wake = wake_) DO
        DO SLEEP(0.25);
        SET quarters = quarters - 1;
    END WHILE;
    DELETE FROM holdfast_push WHERE wake = wake_ RETURNING owner, token;
END $$

DELIMITER ;
