-- The line of one name: what the verbs are made of. In all of them the seat is locked by whoever calls, or here.

-- When nothing of a claim matters any more.
CREATE OR REPLACE FUNCTION holdfast_end(token bigint, evicted boolean, expires bigint, delay bigint, ttl bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN token = 0 THEN expires WHEN evicted THEN expires + greatest(delay, ttl) ELSE expires + delay END
$$;

-- Lock the seats of these names, in order; make those that are missing. Answers with the time after that.
CREATE OR REPLACE FUNCTION holdfast_lock(names text[]) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'holdfast needs READ COMMITTED' USING ERRCODE = 'feature_not_supported';
    END IF;
    -- `WHERE false` updates nothing, and locks the row all the same: one pass in one order, whether a seat is there or not.
    INSERT INTO holdfast_claim (name, place) SELECT n, 0 FROM unnest(names) n ORDER BY n COLLATE "C"
        ON CONFLICT (name, place) DO UPDATE SET place = 0 WHERE false;
    RETURN holdfast_now();
END $$;

-- Drop what is over. The seat is locked.
CREATE OR REPLACE FUNCTION holdfast_sweep(n text, now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM holdfast_claim c WHERE c.name = n AND c.place > 0
        AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now;
    UPDATE holdfast_claim c SET owner = NULL, token = 0 WHERE c.name = n AND c.place = 0 AND c.owner IS NOT NULL
        AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now;
END $$;

-- Drop what is over; grant, in order, whatever fits now; and tell those who are told by a push: all but `asker`, who reads
-- the reply. Who waits in the coordinator that asks (its channel is `home`) needs no NOTIFY, which wakes every listening
-- session: it is told by the reply, ' owner token' for each. The seat is locked.
CREATE OR REPLACE FUNCTION holdfast_promote(n text, now bigint, asker text, home text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line    record;
    waiting record;
    free    bigint;
    last    bigint;
    next    integer;
    blocked boolean := false;
    told    text := '';
BEGIN
    LOOP
        SELECT max(c.mark) AS mark, bool_or(c.crowded) AS crowded, max(c.place) > 0 AS behind,
               max(c.capacity) FILTER (WHERE c.place = 0) AS capacity,
               sum(c.weight) FILTER (WHERE c.token > 0 AND c.expires + c.delay > now) AS used,
               min(c.place) FILTER (WHERE c.owner IS NOT NULL AND c.token = 0) AS first,
               min(CASE WHEN c.owner IS NOT NULL
                        THEN holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) END) AS first_end
            INTO line FROM holdfast_claim c WHERE c.name = n;
        EXIT WHEN line.first_end IS NULL OR line.first_end > now;
        PERFORM holdfast_sweep(n, now);
    END LOOP;
    last := line.mark;
    next := line.first;
    free := line.capacity - coalesce(line.used, 0);
    WHILE next IS NOT NULL AND free > 0 LOOP
        UPDATE holdfast_claim c SET token = greatest(last + 1, now), since = now
            WHERE c.name = n AND c.place = next AND c.weight <= free
            RETURNING c.token, c.owner, c.weight, c.wake INTO waiting;
        IF FOUND THEN
            last := waiting.token;
            free := free - waiting.weight;
            IF waiting.wake = '' OR waiting.owner = asker THEN
                NULL;
            ELSIF waiting.wake = home THEN
                told := told || ' ' || waiting.owner || ' ' || last;
            ELSE
                PERFORM pg_notify(waiting.wake, waiting.owner || ' ' || last);
            END IF;
            EXIT WHEN free = 0;
        ELSE
            blocked := true;
        END IF;
        SELECT c.place INTO next FROM holdfast_claim c
            WHERE c.name = n AND c.place > next AND c.owner IS NOT NULL AND c.token = 0 AND NOT (blocked AND c.fair)
            ORDER BY c.place LIMIT 1;
    END LOOP;
    IF last <> line.mark OR line.crowded <> line.behind THEN
        UPDATE holdfast_claim c SET mark = last, crowded = line.behind WHERE c.name = n AND c.place = 0;
    END IF;
    RETURN told;
END $$;

-- What a waiter is told: the five numbers of a take. The seat is locked.
CREATE OR REPLACE FUNCTION holdfast_queued(n text, mine integer, patience_ bigint, now bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    line  record;
    after bigint := patience_ / 3;
BEGIN
    SELECT count(*) FILTER (WHERE c.place < mine AND (c.token = 0 OR c.expires + c.delay > now)) AS ahead,
           count(*) FILTER (WHERE c.place < mine AND c.token = 0) AS waiting,
           min(c.expires + c.delay) FILTER (WHERE c.token > 0 AND c.expires + c.delay > now) AS ends,
           max(s.mark) AS mark
        INTO line FROM holdfast_claim c JOIN holdfast_claim s ON s.name = c.name AND s.place = 0
        WHERE c.name = n AND c.owner IS NOT NULL;
    IF line.waiting = 0 AND line.ends IS NOT NULL THEN  -- the first in line looks when a hold may have ended
        after := least(after, greatest(1000, line.ends - now + 500));
    END IF;
    RETURN ARRAY[0, after, line.ahead, 0, line.mark];
END $$;

-- One look at a whole line, for somebody who may stand in it. The seat is locked.
CREATE OR REPLACE FUNCTION holdfast_look(
    n text, o text, now bigint,
    OUT capacity integer, OUT mark bigint, OUT crowded boolean,  -- of the seat
    OUT last integer,                                            -- the last place; NULL if nobody is there
    OUT over boolean,                                            -- somebody is to be swept away
    OUT standing bigint, OUT waiting bigint, OUT ends bigint,    -- how many, how many of them wait, the first hold's end
    OUT free bigint,
    OUT mine integer, OUT token bigint, OUT evicted boolean      -- the asker's own place; NULL if there is none
) LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'holdfast needs READ COMMITTED' USING ERRCODE = 'feature_not_supported';
    END IF;
    SELECT max(c.capacity) FILTER (WHERE c.place = 0), max(c.mark) FILTER (WHERE c.place = 0),
           bool_or(c.crowded AND c.place = 0),
           max(c.place) FILTER (WHERE c.owner IS NOT NULL),
           coalesce(bool_or(c.owner IS NOT NULL
                            AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now), false),
           count(*) FILTER (WHERE c.owner IS NOT NULL AND (c.token = 0 OR c.expires + c.delay > now)),
           count(*) FILTER (WHERE c.owner IS NOT NULL AND c.token = 0),
           min(c.expires + c.delay) FILTER (WHERE c.token > 0 AND c.expires + c.delay > now),
           max(c.capacity) FILTER (WHERE c.place = 0)
               - coalesce(sum(c.weight) FILTER (WHERE c.token > 0 AND c.expires + c.delay > now), 0),
           max(c.place) FILTER (WHERE c.owner = o), max(c.token) FILTER (WHERE c.owner = o),
           bool_or(c.evicted) FILTER (WHERE c.owner = o)
    INTO capacity, mark, crowded, last, over, standing, waiting, ends, free, mine, token, evicted
    FROM holdfast_claim c WHERE c.name = n;
END $$;

-- Take a claim out of its line, whatever it is. The seat is locked.
CREATE OR REPLACE FUNCTION holdfast_remove(n text, o text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM holdfast_claim c WHERE c.name = n AND c.owner = o AND c.place > 0;
    UPDATE holdfast_claim c SET owner = CASE WHEN c.owner = o THEN NULL ELSE c.owner END,
                                token = CASE WHEN c.owner = o THEN 0 ELSE c.token END,
                                crowded = EXISTS (SELECT 1 FROM holdfast_claim b WHERE b.name = n AND b.place > 0)
        WHERE c.name = n AND c.place = 0;
END $$;
