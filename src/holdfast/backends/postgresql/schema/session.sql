-- Session locks (`postgresql+session://`): the server's own advisory locks, with a token for each grant, and with what
-- others can see of who holds and who waits.
--
-- 1. Who holds is what pg_locks says; the row tells who that is, by the backend that wrote it. So a row that was left
--    behind by a session that ended says nothing.
-- 2. Who waits has a row for as long as the session lives that wrote it. The table is not logged: a crash that empties
--    it ends every session, too.
-- 3. No commit here is flushed to disk: if a mark is lost in a crash of the server, so is every session, and the floor
--    of all tokens has been raised above it (`ceiling.sql`).

CREATE TABLE IF NOT EXISTS holdfast_session (
    name    text COLLATE "C" PRIMARY KEY,
    key     bigint  NOT NULL,
    mark    bigint  NOT NULL,
    since   bigint  NOT NULL,
    backend integer NOT NULL,
    owner   text    NOT NULL,
    who     text    NOT NULL  -- actor, mode, host, process and ttl, a line each
) WITH (fillfactor = 40);

CREATE UNLOGGED TABLE IF NOT EXISTS holdfast_session_waiter (
    owner   text    PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    since   bigint  NOT NULL,
    backend integer NOT NULL,
    who     text    NOT NULL
);

-- Take a session lock if it is free: its token, or 0; then, if it is to be waited for, others see it.
CREATE OR REPLACE FUNCTION holdfast_session_try(key_ bigint, n text, o text, who_ text, queue boolean)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    now   bigint;
    token bigint;
    below bigint;
    above bigint;
BEGIN
    IF NOT pg_try_advisory_lock(key_) THEN
        IF queue THEN
            PERFORM holdfast_session_queue(n, o, who_);
        END IF;
        RETURN 0;
    END IF;
    now := holdfast_now();
    IF current_setting('synchronous_commit') <> 'off' THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    SELECT f.floor, f.ceiling INTO below, above FROM holdfast_session_floor f;
    IF above IS NULL THEN
        below := holdfast_session_raise(now);
        above := now + 2000000;
    END IF;
    UPDATE holdfast_session s SET mark = greatest(s.mark + 1, now, below), since = now, backend = pg_backend_pid(),
                                  owner = o, who = who_
        WHERE s.name = n RETURNING s.mark INTO token;
    IF NOT FOUND THEN
        INSERT INTO holdfast_session AS s (name, key, mark, since, backend, owner, who)
            VALUES (n, key_, greatest(now, below), now, pg_backend_pid(), o, who_)
            ON CONFLICT (name) DO UPDATE SET mark = greatest(s.mark + 1, excluded.mark), since = excluded.since,
                backend = excluded.backend, owner = excluded.owner, who = excluded.who
            RETURNING s.mark INTO token;
    END IF;
    IF token >= above THEN
        PERFORM holdfast_session_raise(token);
    END IF;
    RETURN token;
END $$;

-- The same for somebody who was seen waiting.
CREATE OR REPLACE FUNCTION holdfast_session_again(key_ bigint, n text, o text, who_ text, queue boolean)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    token bigint := holdfast_session_try(key_, n, o, who_, queue);
BEGIN
    IF token > 0 OR NOT queue THEN
        DELETE FROM holdfast_session_waiter w WHERE w.owner = o;
    END IF;
    RETURN token;
END $$;

-- Wait for a session lock, in the server's own line: its token.
CREATE OR REPLACE FUNCTION holdfast_session_wait(key_ bigint, n text, o text, who_ text)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock(key_);
    RETURN holdfast_session_again(key_, n, o, who_, false)
         + 0 * pg_advisory_unlock(key_)::integer;  -- it was taken twice, and is held once
END $$;

-- Be seen waiting. Through another session it is seen from now on: that one may be younger than the wait, and whoever
-- looks at its age (`holdfast_session_lives`) would take it for one that got the process id of a session that ended.
-- Nor does a wait begin before its session, though the clock may have been set back.
CREATE OR REPLACE FUNCTION holdfast_session_queue(n text, o text, who_ text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO holdfast_session_waiter AS w (owner, name, since, backend, who)
        SELECT o, n, greatest(holdfast_now(), ceil(extract(epoch FROM a.backend_start) * 1000000)::bigint),
               pg_backend_pid(), who_
            FROM pg_stat_get_activity(pg_backend_pid()) a
        ON CONFLICT (owner) DO UPDATE SET backend = excluded.backend,
            since = CASE w.backend WHEN excluded.backend THEN w.since ELSE excluded.since END
$$;

-- The sessions of those who wait, as far as they live: the process id of one that ended may be another's by now.
CREATE OR REPLACE FUNCTION holdfast_session_lives(backend_ integer, since_ bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM pg_stat_get_activity(backend_) a
                   WHERE coalesce(extract(epoch FROM a.backend_start) * 1000000 <= since_, true))
$$;
