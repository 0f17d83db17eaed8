-- The tokens of session locks after a crash.
--
-- 1. Grants are not flushed to disk (`session.sql`, rule 3), but no token is given at or above the ceiling, and the
--    ceiling is flushed before it is used. It is raised by two seconds at a time: few grants wait for the disk, and
--    tokens stay close to the clock, so that an engine that forgets everything is still saved by its clock.
-- 2. The floor is not logged: a crash empties it, and whoever finds it empty puts it where the ceiling was. All tokens
--    from then on lie above all that were given before, whatever was forgotten and wherever the clock stands.

CREATE TABLE IF NOT EXISTS holdfast_session_ceiling (
    only_row boolean PRIMARY KEY CHECK (only_row),
    ceiling  bigint  NOT NULL
);

CREATE UNLOGGED TABLE IF NOT EXISTS holdfast_session_floor (
    only_row boolean PRIMARY KEY CHECK (only_row),
    floor    bigint  NOT NULL,
    ceiling  bigint  NOT NULL
);

-- See to it that a token may be given: raise the ceiling above it. Answers with the floor.
CREATE OR REPLACE FUNCTION holdfast_session_raise(token bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old    bigint;
    raised bigint;
    below  bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'on', true);
    INSERT INTO holdfast_session_ceiling VALUES (true, 0) ON CONFLICT (only_row) DO NOTHING;
    SELECT c.ceiling INTO old FROM holdfast_session_ceiling c FOR UPDATE;
    raised := greatest(old, token) + 2000000;
    UPDATE holdfast_session_ceiling SET ceiling = raised;
    INSERT INTO holdfast_session_floor AS f VALUES (true, old, raised)
        ON CONFLICT (only_row) DO UPDATE SET ceiling = excluded.ceiling
        RETURNING f.floor INTO below;
    RETURN below;
END $$;
