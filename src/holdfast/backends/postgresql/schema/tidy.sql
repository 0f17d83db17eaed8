-- Housekeeping. Looks at about `most` rows of each table and drops what is over: claims whose owners died, seats that host
-- nobody and whose mark is a day old (calendar time has passed it; one that is unrecovered stays), limiters that are full again, marks of session locks
-- that nobody holds, waiters whose session ended. Never waits for a lock.
--
-- It looks at some pages, chosen by chance. So nobody has to remember where to go on, every row is looked at as often as
-- every other, and no index is needed on what a take writes (which would make each take write that index, too).

DROP FUNCTION IF EXISTS holdfast_tidy(text, integer);

-- How much of a table has about so many rows, in per cent; 16 rows or more are in a page.
CREATE OR REPLACE FUNCTION holdfast_share(which regclass, most integer) RETURNS real LANGUAGE sql AS $$
    SELECT least(100, 100.0 * ceil(most / 16.0)
                      / greatest(1, pg_relation_size(which) / current_setting('block_size')::integer))::real
$$;

CREATE OR REPLACE FUNCTION holdfast_tidy(most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    now   bigint := holdfast_now();
    old   bigint := now - 86400000000;
    share real := holdfast_share('holdfast_claim', most);
    names text[];
    over  text;
BEGIN
    names := ARRAY(
        SELECT DISTINCT c.name FROM holdfast_claim c TABLESAMPLE SYSTEM (share)
        WHERE c.place = 0 AND c.owner IS NULL AND NOT c.crowded AND NOT c.unrecovered AND c.mark < old
           OR c.owner IS NOT NULL AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now);
    FOR over IN
        SELECT s.name FROM holdfast_claim s WHERE s.place = 0 AND s.name = ANY (names) ORDER BY s.name
        FOR UPDATE SKIP LOCKED
    LOOP
        now := holdfast_now();
        PERFORM holdfast_promote(holdfast_recount(over, now), now, '', '');
        DELETE FROM holdfast_claim c WHERE c.name = over AND c.place = 0 AND c.owner IS NULL AND NOT c.crowded
            AND NOT c.unrecovered AND c.mark < old;
    END LOOP;

    share := holdfast_share('holdfast_rate', most);
    names := ARRAY(SELECT r.name FROM holdfast_rate r TABLESAMPLE SYSTEM (share) WHERE r.tat < now);
    DELETE FROM holdfast_rate WHERE name IN (
        SELECT r.name FROM holdfast_rate r WHERE r.name = ANY (names) AND r.tat < now FOR UPDATE SKIP LOCKED);

    -- A lock may be held for longer than a day: then its row says by whom. Who takes it after this look finds its row, or
    -- makes a new one, whose mark is the clock's.
    share := holdfast_share('holdfast_session', most);
    names := ARRAY(SELECT s.name FROM holdfast_session s TABLESAMPLE SYSTEM (share) WHERE s.mark < old);
    IF names <> '{}' THEN
        DELETE FROM holdfast_session WHERE name IN (
            SELECT s.name FROM holdfast_session s
            WHERE s.name = ANY (names) AND s.mark < old AND s.key NOT IN (
                SELECT l.classid::bigint << 32 | l.objid::bigint FROM pg_locks l
                WHERE l.locktype = 'advisory' AND l.objsubid = 1
                  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
            FOR UPDATE SKIP LOCKED);
    END IF;

    share := holdfast_share('holdfast_session_waiter', most);
    names := ARRAY(SELECT w.owner FROM holdfast_session_waiter w TABLESAMPLE SYSTEM (share)
                   WHERE NOT holdfast_session_lives(w.backend, w.since));
    DELETE FROM holdfast_session_waiter w WHERE w.owner = ANY (names) AND NOT holdfast_session_lives(w.backend, w.since);
END $$;
