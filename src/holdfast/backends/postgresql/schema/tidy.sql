-- Go over the next names after this one and drop what is over: claims whose owners died, seats that host nobody and
-- whose mark is a day old (calendar time has passed it), limiters that are full again. Never waits for a lock.
-- Answers with the last name that it saw; NULL at the end.
CREATE OR REPLACE FUNCTION holdfast_tidy(after text, most integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now  bigint := holdfast_now();
    seen text[];
    last text;
    over text;
BEGIN
    seen := ARRAY(SELECT c.name FROM holdfast_claim c WHERE c.name > after AND c.place = 0 ORDER BY c.name LIMIT most);
    last := seen[cardinality(seen)];
    DELETE FROM holdfast_rate WHERE name IN (
        SELECT r.name FROM holdfast_rate r WHERE r.name > after AND (last IS NULL OR r.name <= last) AND r.tat < now
        FOR UPDATE SKIP LOCKED);
    DELETE FROM holdfast_session WHERE name IN (
        SELECT s.name FROM holdfast_session s WHERE s.mark < now - 86400000000 LIMIT most FOR UPDATE SKIP LOCKED);
    DELETE FROM holdfast_session_waiter w WHERE NOT holdfast_session_lives(w.backend, w.since);
    FOR over IN
        SELECT s.name FROM holdfast_claim s WHERE s.place = 0 AND s.name = ANY (seen) AND (
            s.owner IS NULL AND NOT s.crowded AND s.mark < now - 86400000000
            OR EXISTS (SELECT 1 FROM holdfast_claim c WHERE c.name = s.name AND c.owner IS NOT NULL
                       AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now))
        ORDER BY s.name FOR UPDATE SKIP LOCKED
    LOOP
        now := holdfast_now();
        PERFORM holdfast_promote(over, now, '', '');
        DELETE FROM holdfast_claim c WHERE c.name = over AND c.place = 0 AND c.owner IS NULL AND NOT c.crowded
            AND c.mark < now - 86400000000;
    END LOOP;
    RETURN last;
END $$;
