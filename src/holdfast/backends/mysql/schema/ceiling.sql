-- The tokens of session locks after a crash or a restart.
--
-- 1. Grants are kept in memory (`session.sql`, rule 3), but no token is given at or above the ceiling, and the ceiling is
--    on disk before it is used. It is raised by two seconds at a time: few grants wait for the disk, and
--    tokens stay close to the clock, so that an engine that forgets everything is still saved by its clock.
-- 2. The floor is in memory: a restart empties it, and whoever finds it empty puts it where the ceiling was. All tokens
--    from then on lie above all that were given before, wherever the clock stands.

CREATE TABLE IF NOT EXISTS holdfast_session_ceiling (
    only_row tinyint PRIMARY KEY,
    ceiling  bigint NOT NULL
) ENGINE = InnoDB STATS_AUTO_RECALC = 0;

CREATE TABLE IF NOT EXISTS holdfast_session_floor (
    only_row tinyint PRIMARY KEY,
    floor    bigint NOT NULL,
    ceiling  bigint NOT NULL
) ENGINE = MEMORY;

DELIMITER $$

-- See to it that a token may be given: raise the ceiling above it, and have a floor.
CREATE OR REPLACE PROCEDURE holdfast_session_raise(token bigint) SQL SECURITY INVOKER
BEGIN
    DECLARE old, raised bigint DEFAULT 0;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    START TRANSACTION;
    INSERT INTO holdfast_session_ceiling (only_row, ceiling) VALUES (1, 0) ON DUPLICATE KEY UPDATE only_row = 1;
    SELECT c.ceiling INTO old FROM holdfast_session_ceiling c WHERE c.only_row = 1 FOR UPDATE;
    SET raised = GREATEST(old, token) + 2000000;
    UPDATE holdfast_session_ceiling c SET c.ceiling = raised WHERE c.only_row = 1;
    COMMIT;
    -- Only now: what stands here may be used at once, and is not undone by anything.
    INSERT INTO holdfast_session_floor (only_row, floor, ceiling) VALUES (1, old, raised)
        ON DUPLICATE KEY UPDATE ceiling = GREATEST(ceiling, raised);
END $$

DELIMITER ;
