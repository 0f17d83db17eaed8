-- The lock table of PostgreSQL: tables, and one function per verb. Made for PostgreSQL 12 and later.
--
-- A name's line is its rows in `holdfast_claim`, ordered by `place`. Place 0 is the name's seat: it stays when the line
-- is empty, because it carries the mark (the last token), and it hosts the claim that comes to an empty line. So an
-- uncontended take and an uncontended release write one row each, in place (no index holds what they change).
--
-- 1. Whoever changes anything in a line holds the row lock of its seat. Several seats are locked in the order of
--    their names, so two requests never wait for each other in a circle.
-- 2. Under READ COMMITTED each statement inside a function sees what was committed before that statement. So what is
--    read after the seat was locked is the truth; what is decided in the locking statement itself looks at the
--    seat's own columns only (`crowded` is there for that).
-- 3. Times are microseconds of the server's clock, read after the seat was locked. No client's clock is looked at.
-- 4. A promoted claim is told in the same transaction: NOTIFY on its owner's channel (`wake`), with owner and token.
--    It is delivered if, and only if, the promotion is committed.
--
-- The rules of the line are those of `holdfast/_core/line.py`; a property test compares every reply.
-- Other roles need: GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_claim, holdfast_rate, holdfast_session;
-- GRANT SELECT ON holdfast_meta.

CREATE TABLE IF NOT EXISTS holdfast_claim (
    name     text COLLATE "C" NOT NULL,
    place    integer NOT NULL,
    crowded  boolean NOT NULL DEFAULT false,  -- of a seat: there are places behind it
    evicted  boolean NOT NULL DEFAULT false,
    fair     boolean NOT NULL DEFAULT true,
    mark     bigint  NOT NULL DEFAULT 0,      -- of a seat
    token    bigint  NOT NULL DEFAULT 0,      -- 0 while it waits
    ttl      bigint  NOT NULL DEFAULT 0,
    patience bigint  NOT NULL DEFAULT 0,
    delay    bigint  NOT NULL DEFAULT 0,
    since    bigint  NOT NULL DEFAULT 0,
    expires  bigint  NOT NULL DEFAULT 0,
    capacity integer NOT NULL DEFAULT 1,      -- of a seat
    weight   integer NOT NULL DEFAULT 1,
    pid      integer NOT NULL DEFAULT 0,
    owner    text,                            -- NULL where a seat hosts nobody
    wake     text NOT NULL DEFAULT '',
    actor    text NOT NULL DEFAULT '',
    mode     text NOT NULL DEFAULT 'lock',
    host     text NOT NULL DEFAULT '',
    PRIMARY KEY (name, place)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- One number per limiter: the theoretical arrival time of GCRA.
CREATE TABLE IF NOT EXISTS holdfast_rate (
    name text COLLATE "C" PRIMARY KEY,
    tat  bigint NOT NULL
) WITH (fillfactor = 40);

-- The marks of session locks (`postgresql+session://`): the last token of each name.
CREATE TABLE IF NOT EXISTS holdfast_session (
    name text COLLATE "C" PRIMARY KEY,
    mark bigint NOT NULL
) WITH (fillfactor = 40);

-- cluster: the identity of this database, for sequencers. version: of this file.
CREATE TABLE IF NOT EXISTS holdfast_meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);

CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

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
-- the reply. The seat is locked.
CREATE OR REPLACE FUNCTION holdfast_promote(n text, now bigint, asker text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    line    record;
    waiting record;
    free    bigint;
    last    bigint;
    blocked boolean := false;
BEGIN
    LOOP
        SELECT max(c.mark) AS mark, bool_or(c.crowded) AS crowded, max(c.place) > 0 AS behind,
               sum(c.weight) FILTER (WHERE c.token > 0 AND c.expires + c.delay > now) AS used,
               min(CASE WHEN c.owner IS NOT NULL
                        THEN holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) END) AS first_end
            INTO line FROM holdfast_claim c WHERE c.name = n;
        EXIT WHEN line.first_end IS NULL OR line.first_end > now;
        PERFORM holdfast_sweep(n, now);
    END LOOP;
    last := line.mark;
    FOR waiting IN SELECT c.place, c.owner, c.weight, c.fair, c.wake, s.capacity
                   FROM holdfast_claim c, holdfast_claim s
                   WHERE c.name = n AND c.owner IS NOT NULL AND c.token = 0 AND s.name = n AND s.place = 0
                   ORDER BY c.place LOOP
        free := coalesce(free, waiting.capacity - coalesce(line.used, 0));
        EXIT WHEN free <= 0;
        IF waiting.weight <= free AND NOT (blocked AND waiting.fair) THEN
            free := free - waiting.weight;
            last := greatest(last + 1, now);
            UPDATE holdfast_claim c SET token = last, since = now WHERE c.name = n AND c.place = waiting.place;
            IF waiting.wake <> '' AND waiting.owner <> asker THEN
                PERFORM pg_notify(waiting.wake, waiting.owner || ' ' || last);
            END IF;
        ELSE
            blocked := true;
        END IF;
    END LOOP;
    IF last <> line.mark OR line.crowded <> line.behind THEN
        UPDATE holdfast_claim c SET mark = last, crowded = line.behind WHERE c.name = n AND c.place = 0;
    END IF;
END $$;

-- Take: enter the lines of all claims in one step, or only find out (`queue` off). For each claim five numbers: token (0:
-- not granted), look again after (µs), how many stand before it, the capacity if it did not match (else 0), and the mark
-- of the name for one that waits.
-- This is the uncontended take of one name; `holdfast_enter` does the rest.
CREATE OR REPLACE FUNCTION holdfast_take(
    n text, o text, weight_ integer, capacity_ integer, fair_ boolean, ttl_ bigint, patience_ bigint, delay_ bigint,
    queue boolean, wake_ text, actor_ text, mode_ text, host_ text, pid_ integer
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    now     bigint := holdfast_now();
    granted bigint;
BEGIN
    INSERT INTO holdfast_claim AS c (name, place, mark, token, owner, weight, capacity, fair, ttl, patience, delay,
                                     since, expires, wake, actor, mode, host, pid)
    VALUES (n, 0, now, now, o, weight_, capacity_, fair_, ttl_, patience_, delay_, now, now + ttl_, '', actor_, mode_,
            host_, pid_)
    ON CONFLICT (name, place) DO UPDATE SET
        mark = greatest(c.mark + 1, now), token = greatest(c.mark + 1, now), owner = o, weight = weight_,
        capacity = capacity_, fair = fair_, ttl = ttl_, patience = patience_, delay = delay_, since = now,
        expires = now + ttl_, evicted = false, wake = '', actor = actor_, mode = mode_, host = host_, pid = pid_
    WHERE c.owner IS NULL AND NOT c.crowded
    RETURNING c.token INTO granted;
    IF FOUND THEN
        RETURN ARRAY[granted, 0, 0, 0, 0];
    END IF;
    RETURN holdfast_enter(ARRAY[n], ARRAY[o], ARRAY[weight_], ARRAY[capacity_], ARRAY[fair_], ARRAY[ttl_],
                          ARRAY[patience_], ARRAY[delay_], queue, wake_, ARRAY[actor_], ARRAY[mode_], host_, pid_,
                          true);
END $$;

CREATE OR REPLACE FUNCTION holdfast_enter(
    names text[], owners text[], weights integer[], capacities integer[], fairs boolean[], ttls bigint[],
    patiences bigint[], delays bigint[], queue boolean, wake_ text, actors text[], modes text[], host_ text,
    pid_ integer, locked boolean
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    now     bigint := CASE WHEN locked THEN holdfast_now() ELSE holdfast_lock(names) END;
    count   integer := cardinality(names);
    reply   bigint[] := '{}';
    old     boolean[] := '{}';
    granted boolean := true;
    other   boolean := false;
    line    record;
    mine    integer;
    token_  bigint;
BEGIN
    FOR i IN 1 .. count LOOP
        line := holdfast_look(names[i], owners[i], now);
        IF line.over THEN
            PERFORM holdfast_sweep(names[i], now);
            line := holdfast_look(names[i], owners[i], now);
        END IF;
        reply := reply || ARRAY[0, 0, 0, 0, 0]::bigint[];
        IF line.capacity <> capacities[i] THEN
            IF line.standing > 0 THEN
                reply[5 * i - 1] := line.capacity;
                other := true;
            ELSE
                UPDATE holdfast_claim c SET capacity = capacities[i] WHERE c.name = names[i] AND c.place = 0;
                line.free := line.free + capacities[i] - line.capacity;
            END IF;
        END IF;
    END LOOP;
    IF other THEN
        RETURN reply;
    END IF;

    FOR i IN 1 .. count LOOP
        IF count > 1 THEN
            line := holdfast_look(names[i], owners[i], now);
        END IF;
        mine := line.mine;
        token_ := coalesce(line.token, 0);
        old := old || (mine IS NOT NULL);
        IF mine IS NOT NULL AND NOT line.evicted THEN
            UPDATE holdfast_claim c SET wake = wake_,
                   expires = now + CASE WHEN c.token > 0 THEN c.ttl ELSE c.patience END
                WHERE c.name = names[i] AND c.place = mine;
        ELSE
            IF mine IS NOT NULL THEN  -- its hold is over, but for its delay; who comes again stands at the end
                UPDATE holdfast_claim c SET owner = '~' || c.owner WHERE c.name = names[i] AND c.place = mine;
                token_ := 0;
            END IF;
            mine := coalesce(line.last + 1, 0);
            INSERT INTO holdfast_claim AS c (name, place, owner, weight, fair, ttl, patience, delay, since, expires, wake,
                                             actor, mode, host, pid)
            VALUES (names[i], mine, owners[i], weights[i], fairs[i], ttls[i], patiences[i], delays[i], now,
                    now + patiences[i], wake_, actors[i], modes[i], host_, pid_)
            ON CONFLICT (name, place) DO UPDATE SET
                owner = excluded.owner, token = 0, evicted = false, weight = excluded.weight, fair = excluded.fair,
                ttl = excluded.ttl, patience = excluded.patience, delay = excluded.delay, since = excluded.since,
                expires = excluded.expires, wake = excluded.wake, actor = excluded.actor, mode = excluded.mode,
                host = excluded.host, pid = excluded.pid;
            IF mine > 0 AND NOT line.crowded THEN
                UPDATE holdfast_claim c SET crowded = true WHERE c.name = names[i] AND c.place = 0;
            END IF;
        END IF;
        IF line.free > 0 THEN
            PERFORM holdfast_promote(names[i], now, owners[i]);
            IF token_ = 0 THEN  -- if it has been promoted just now: its owner is asking, so it is good for a ttl
                UPDATE holdfast_claim c SET expires = now + c.ttl
                    WHERE c.name = names[i] AND c.place = mine AND c.token > 0 RETURNING c.token INTO token_;
                token_ := coalesce(token_, 0);
            END IF;
        END IF;
        IF token_ > 0 THEN
            reply[5 * i - 4] := token_;
        ELSE
            granted := false;
            IF NOT queue THEN
                PERFORM holdfast_remove(names[i], owners[i]);
            ELSIF line.free > 0 OR line.mine IS NOT NULL THEN  -- somebody may have moved, or stands behind
                reply := reply[:5 * i - 5] || holdfast_queued(names[i], mine, patiences[i], now) || reply[5 * i + 1:];
            ELSE
                reply[5 * i - 3] := patiences[i] / 3;
                IF line.waiting = 0 THEN  -- the first in line looks when a hold may have ended
                    reply[5 * i - 3] := least(patiences[i] / 3, greatest(1000, line.ends - now + 500));
                END IF;
                reply[5 * i - 2] := line.standing;
                reply[5 * i] := line.mark;
            END IF;
        END IF;
    END LOOP;

    IF NOT queue AND NOT granted THEN  -- all or none
        FOR i IN 1 .. count LOOP
            IF reply[5 * i - 4] > 0 AND NOT old[i] THEN
                PERFORM holdfast_remove(names[i], owners[i]);
                PERFORM holdfast_promote(names[i], now, '');
            END IF;
            reply[5 * i - 4] := 0;
        END LOOP;
    END IF;
    RETURN reply;
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

-- Extend these holds, each by its token. For each: held, refused, evicted or expired.
CREATE OR REPLACE FUNCTION holdfast_renew(names text[], owners text[], tokens bigint[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    now   bigint;
    reply text[];
BEGIN
    -- No seat is made here: a name that has none has no claim to extend.
    PERFORM 1 FROM holdfast_claim c WHERE c.place = 0 AND c.name = ANY (names) ORDER BY c.name FOR UPDATE;
    now := holdfast_now();
    WITH asked AS (
        SELECT a.n, a.o, a.t, a.i FROM unnest(names, owners, tokens) WITH ORDINALITY AS a(n, o, t, i)
    ), held AS (
        UPDATE holdfast_claim c SET expires = now + c.ttl FROM asked a
        WHERE c.name = a.n AND c.owner = a.o AND c.token = a.t AND c.token > 0 AND c.expires > now AND NOT c.evicted
        RETURNING a.i
    )
    SELECT array_agg(CASE WHEN held.i IS NOT NULL THEN 'held'
                          WHEN c.owner IS NULL OR c.token = 0 OR c.token <> a.t THEN 'refused'
                          WHEN c.evicted THEN 'evicted' ELSE 'expired' END ORDER BY a.i)
    INTO reply
    FROM asked a LEFT JOIN held USING (i) LEFT JOIN holdfast_claim c ON held.i IS NULL AND c.name = a.n AND c.owner = a.o;
    RETURN reply;
END $$;

-- Leave the line, waiting or holding; a hold may linger. Whether it was held until now.
CREATE OR REPLACE FUNCTION holdfast_release(n text, o text, linger bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    now  bigint := holdfast_now();
    mine record;
    held boolean;
BEGIN
    IF linger = 0 THEN  -- the uncontended release
        UPDATE holdfast_claim c SET owner = NULL, token = 0
            WHERE c.name = n AND c.place = 0 AND c.owner = o AND c.token > 0 AND c.expires > now AND NOT c.evicted
              AND NOT c.crowded;
        IF FOUND THEN
            RETURN true;
        END IF;
    END IF;
    PERFORM 1 FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    now := holdfast_now();
    SELECT c.place, c.token > 0 AND c.expires > now AND NOT c.evicted AS held INTO mine
        FROM holdfast_claim c WHERE c.name = n AND c.owner = o;
    held := coalesce(mine.held, false);
    IF held AND linger > 0 THEN
        UPDATE holdfast_claim c SET owner = '~' || o, expires = now + linger, delay = 0, wake = ''
            WHERE c.name = n AND c.place = mine.place;
    ELSIF mine.place = 0 THEN
        UPDATE holdfast_claim c SET owner = NULL, token = 0 WHERE c.name = n AND c.place = 0;
    ELSIF mine.place > 0 THEN
        DELETE FROM holdfast_claim c WHERE c.name = n AND c.place = mine.place;
    END IF;
    PERFORM holdfast_promote(n, now, '');
    RETURN held;
END $$;

-- End the hold with this token. Whether there was one.
CREATE OR REPLACE FUNCTION holdfast_evict(n text, t bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    now   bigint := holdfast_lock(ARRAY[n]);
    ended boolean;
BEGIN
    UPDATE holdfast_claim c SET evicted = true, expires = now
        WHERE c.name = n AND c.token = t AND c.token > 0 AND c.expires > now AND NOT c.evicted;
    ended := FOUND;
    PERFORM holdfast_promote(n, now, '');
    RETURN ended;
END $$;

-- Rate limit (GCRA): {1 if allowed now or booked, µs to wait}.
CREATE OR REPLACE FUNCTION holdfast_allow(n text, step bigint, burst integer, cost integer, reserve bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    now  bigint;
    next bigint;
    wait bigint;
BEGIN
    LOOP
        SELECT r.tat INTO next FROM holdfast_rate r WHERE r.name = n FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO holdfast_rate (name, tat) VALUES (n, 0) ON CONFLICT DO NOTHING;
    END LOOP;
    now := holdfast_now();
    next := greatest(next, now) + step * cost;
    wait := greatest(0, next - step * burst - now);
    IF wait > reserve THEN
        RETURN ARRAY[0, wait];
    END IF;
    UPDATE holdfast_rate r SET tat = next WHERE r.name = n;
    RETURN ARRAY[1, wait];
END $$;

-- Take a session lock if it is free: its token, or 0. The commit is not flushed to disk: if the mark is lost in a crash of
-- the server, so is every session, and the clock has passed it.
CREATE OR REPLACE FUNCTION holdfast_session_try(key bigint, n text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    now   bigint;
    token bigint;
BEGIN
    IF NOT pg_try_advisory_lock(key) THEN
        RETURN 0;
    END IF;
    now := holdfast_now();
    IF current_setting('synchronous_commit') <> 'off' THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    UPDATE holdfast_session s SET mark = greatest(s.mark + 1, now) WHERE s.name = n RETURNING s.mark INTO token;
    IF NOT FOUND THEN
        INSERT INTO holdfast_session AS s (name, mark) VALUES (n, now)
            ON CONFLICT (name) DO UPDATE SET mark = greatest(s.mark + 1, now) RETURNING s.mark INTO token;
    END IF;
    RETURN token;
END $$;

-- Wait for a session lock, in the server's own line: its token.
CREATE OR REPLACE FUNCTION holdfast_session_wait(key bigint, n text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock(key);
    RETURN holdfast_session_try(key, n) + 0 * pg_advisory_unlock(key)::integer;  -- it was taken twice, and is held once
END $$;

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
    FOR over IN
        SELECT s.name FROM holdfast_claim s WHERE s.place = 0 AND s.name = ANY (seen) AND (
            s.owner IS NULL AND NOT s.crowded AND s.mark < now - 86400000000
            OR EXISTS (SELECT 1 FROM holdfast_claim c WHERE c.name = s.name AND c.owner IS NOT NULL
                       AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now))
        ORDER BY s.name FOR UPDATE SKIP LOCKED
    LOOP
        now := holdfast_now();
        PERFORM holdfast_promote(over, now, '');
        DELETE FROM holdfast_claim c WHERE c.name = over AND c.place = 0 AND c.owner IS NULL AND NOT c.crowded
            AND c.mark < now - 86400000000;
    END LOOP;
    RETURN last;
END $$;

INSERT INTO holdfast_meta (key, value) VALUES
    ('version', '1'),
    ('cluster', substr(md5(random()::text || clock_timestamp()::text), 1, 12))
ON CONFLICT DO NOTHING;
