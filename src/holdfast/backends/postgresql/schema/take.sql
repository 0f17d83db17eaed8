-- Take: enter the lines of all claims in one step, or only find out (`queue` off). For each claim, with commas: token (0:
-- not granted), look again after (µs), how many stand before it, the capacity if it did not match (else 0), the mark of
-- the name for one that waits, and the note of the name for one that is granted (empty: there is none).

-- Of the version before, which told no notes.
DROP FUNCTION IF EXISTS holdfast_take(text, text, integer, integer, boolean, bigint, bigint, bigint, boolean, text, text, text,
                                      text, integer),
    holdfast_enter(text[], text[], integer[], integer[], boolean[], bigint[], bigint[], bigint[], boolean, text, text[],
                   text[], text, integer, boolean);

-- This is the uncontended take of one name; `holdfast_enter` does the rest.
CREATE OR REPLACE FUNCTION holdfast_take(
    n text, o text, weight_ integer, capacity_ integer, fair_ boolean, ttl_ bigint, patience_ bigint, delay_ bigint,
    robust_ boolean, queue boolean, wake_ text, actor_ text, mode_ text, host_ text, pid_ integer
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now   bigint := holdfast_now();
    reply text;
BEGIN
    -- The index has an entry for every page that a version of the seat was in, the oldest first, and none of them can be
    -- dropped while a transaction is open somewhere. So this looks at the newest, which a search for "= n" comes to last.
    UPDATE holdfast_claim c SET
        mark = greatest(c.mark + 1, now), token = greatest(c.mark + 1, now), owner = o, weight = weight_,
        capacity = capacity_, fair = fair_, ttl = ttl_, patience = patience_, delay = delay_, since = now,
        expires = now + ttl_, evicted = false, wake = '', actor = actor_, mode = mode_, host = host_, pid = pid_,
        robust = robust_
    WHERE c.ctid = (SELECT s.ctid FROM holdfast_claim s WHERE s.name >= n AND s.name <= n AND s.place < 1
                    ORDER BY s.name DESC, s.place DESC LIMIT 1)
      AND c.owner IS NULL AND NOT c.crowded
    RETURNING c.token || ',0,0,0,0,' || coalesce(c.note, '') INTO reply;
    IF FOUND THEN
        RETURN reply;
    END IF;
    INSERT INTO holdfast_claim AS c (name, place, mark, token, owner, weight, capacity, fair, ttl, patience, delay,
                                     since, expires, wake, actor, mode, host, pid, robust)
    VALUES (n, 0, now, now, o, weight_, capacity_, fair_, ttl_, patience_, delay_, now, now + ttl_, '', actor_, mode_,
            host_, pid_, robust_)
    ON CONFLICT (name, place) DO UPDATE SET
        mark = greatest(c.mark + 1, now), token = greatest(c.mark + 1, now), owner = o, weight = weight_,
        capacity = capacity_, fair = fair_, ttl = ttl_, patience = patience_, delay = delay_, since = now,
        expires = now + ttl_, evicted = false, wake = '', actor = actor_, mode = mode_, host = host_, pid = pid_,
        robust = robust_
    WHERE c.owner IS NULL AND NOT c.crowded
    RETURNING c.token || ',0,0,0,0,' || coalesce(c.note, '') INTO reply;
    IF FOUND THEN
        RETURN reply;
    END IF;
    RETURN holdfast_enter(ARRAY[n], ARRAY[o], ARRAY[weight_], ARRAY[capacity_], ARRAY[fair_], ARRAY[ttl_],
                          ARRAY[patience_], ARRAY[delay_], ARRAY[robust_], queue, wake_, ARRAY[actor_], ARRAY[mode_],
                          host_, pid_, true);
END $$;

CREATE OR REPLACE FUNCTION holdfast_enter(
    names text[], owners text[], weights integer[], capacities integer[], fairs boolean[], ttls bigint[],
    patiences bigint[], delays bigint[], robusts boolean[], queue boolean, wake_ text, actors text[], modes text[],
    host_ text, pid_ integer, locked boolean
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now     bigint := CASE WHEN locked THEN holdfast_now() ELSE holdfast_lock(names) END;
    count   integer := cardinality(names);
    reply   bigint[] := '{}';
    notes   text[] := array_fill(''::text, ARRAY[cardinality(names)]);
    old     boolean[] := '{}';
    granted boolean := true;
    other   boolean := false;
    seat    holdfast_claim;
    mine    holdfast_claim;
    step    record;
    first_  integer;
    behind_ integer;
    last_   integer;
    token_  bigint;
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'holdfast needs READ COMMITTED' USING ERRCODE = 'feature_not_supported';
    END IF;
    FOR i IN 1 .. count LOOP
        SELECT * INTO seat FROM holdfast_claim c WHERE c.name = names[i] AND c.place = 0;
        IF NOT seat.crowded OR seat.quiet <= now OR seat.quiet IS NULL THEN
            seat := holdfast_count(seat, now);
        END IF;
        reply := reply || ARRAY[0, 0, 0, 0, 0]::bigint[];
        IF seat.capacity <> capacities[i] THEN
            step := holdfast_front(seat, now);
            seat := step.seat;
            IF seat.used > 0 OR step.front IS NOT NULL THEN
                reply[5 * i - 1] := seat.capacity;
                other := true;
            ELSE
                seat.capacity := capacities[i];
            END IF;
            PERFORM holdfast_save(seat);
        END IF;
    END LOOP;
    IF other THEN
        RETURN holdfast_taken(reply, notes);
    END IF;

    FOR i IN 1 .. count LOOP
        IF count > 1 THEN
            SELECT * INTO seat FROM holdfast_claim c WHERE c.name = names[i] AND c.place = 0;
            IF NOT seat.crowded THEN
                seat := holdfast_count(seat, now);
            END IF;
        END IF;
        first_ := seat.first;
        behind_ := seat.behind;
        last_ := seat.last;
        mine := NULL;
        IF seat.owner = owners[i] THEN
            mine := seat;
        ELSIF seat.behind > 0 THEN
            SELECT * INTO mine FROM holdfast_claim c WHERE c.queued = owners[i] AND c.name = names[i];
            IF mine.token = 0 AND mine.expires <= now THEN  -- it has lost its place
                DELETE FROM holdfast_claim c WHERE c.name = names[i] AND c.place = mine.place;
                seat.behind := seat.behind - 1;
                mine := NULL;
            END IF;
        END IF;
        old := old || (mine.place IS NOT NULL AND NOT mine.evicted);
        IF mine.evicted THEN  -- its hold is over, but for its delay; who comes again stands at the end
            UPDATE holdfast_claim c SET owner = '~' || c.owner WHERE c.name = names[i] AND c.place = mine.place;
            IF mine.place = 0 THEN
                seat.owner := '~' || seat.owner;
            END IF;
            mine := NULL;
        END IF;
        token_ := coalesce(mine.token, 0);
        IF mine.place IS NOT NULL THEN
            UPDATE holdfast_claim c SET wake = wake_,
                   expires = now + CASE WHEN c.token > 0 THEN c.ttl ELSE c.patience END
                WHERE c.name = names[i] AND c.place = mine.place;
        ELSIF seat.owner IS NULL AND seat.behind = 0 THEN
            UPDATE holdfast_claim c SET
                owner = owners[i], token = 0, evicted = false, weight = weights[i], fair = fairs[i], ttl = ttls[i],
                patience = patiences[i], delay = delays[i], since = now, expires = now + patiences[i], wake = wake_,
                actor = actors[i], mode = modes[i], host = host_, pid = pid_, robust = robusts[i]
                WHERE c.name = names[i] AND c.place = 0;
            mine.place := 0;
            seat.owner := owners[i];
            seat.first := 0;
        ELSIF queue OR weights[i] <= seat.capacity - seat.used THEN
            mine.place := CASE WHEN seat.behind = 0 THEN 1 ELSE seat.last + 1 END;
            INSERT INTO holdfast_claim AS c (name, place, owner, weight, fair, ttl, patience, delay, since, expires, wake,
                                             actor, mode, host, pid, robust)
            VALUES (names[i], mine.place, owners[i], weights[i], fairs[i], ttls[i], patiences[i], delays[i], now,
                    now + patiences[i], wake_, actors[i], modes[i], host_, pid_, robusts[i]);
            IF seat.behind = 0 THEN
                seat.first := least(seat.first, 1);
                seat.overtakers := CASE WHEN seat.fair THEN 0 ELSE 1 END;
            END IF;
            seat.last := mine.place;
            seat.behind := seat.behind + 1;
            IF NOT fairs[i] THEN
                seat.overtakers := seat.overtakers + 1;
            END IF;
        END IF;
        IF seat.used < seat.capacity THEN
            step := holdfast_promote(seat, now, owners[i], '');
            seat := step.seat;
            first_ := seat.first;
            behind_ := seat.behind;
            last_ := seat.last;  -- this much is written
            IF token_ = 0 THEN  -- if it has been promoted just now: its owner is asking, so it is good for a ttl
                UPDATE holdfast_claim c SET expires = now + c.ttl
                    WHERE c.name = names[i] AND c.place = mine.place AND c.token > 0 RETURNING c.token INTO token_;
                token_ := coalesce(token_, 0);
            END IF;
        END IF;
        IF token_ > 0 THEN
            reply[5 * i - 4] := token_;
            notes[i] := coalesce(seat.note, '');
        ELSE
            granted := false;
            IF NOT queue THEN
                IF mine.place IS NOT NULL THEN
                    step := holdfast_leave(seat, owners[i], now, false);
                    seat := step.seat;
                END IF;
            ELSE
                step := holdfast_front(seat, now);
                seat := step.seat;
                reply[5 * i - 3] := patiences[i] / 3;
                IF step.front = mine.place AND seat.holds > 0 THEN  -- the first in line looks when a hold may have ended
                    reply[5 * i - 3] := least(patiences[i] / 3, greatest(1000, seat.quiet - now + 500));
                END IF;
                reply[5 * i - 2] := seat.holds + mine.place - step.front;
                reply[5 * i] := seat.mark;
            END IF;
        END IF;
        IF seat.behind <> behind_ OR seat.first <> first_ OR seat.last <> last_ THEN
            PERFORM holdfast_save(seat);
        END IF;
    END LOOP;

    IF NOT queue AND NOT granted THEN  -- all or none
        FOR i IN 1 .. count LOOP
            IF reply[5 * i - 4] > 0 AND NOT old[i] THEN
                SELECT * INTO seat FROM holdfast_claim c WHERE c.name = names[i] AND c.place = 0;
                IF NOT seat.crowded THEN
                    seat := holdfast_count(seat, now);
                END IF;
                step := holdfast_leave(seat, owners[i], now, false);
                PERFORM holdfast_promote(step.seat, now, '', '');
            END IF;
            reply[5 * i - 4] := 0;
            notes[i] := '';
        END LOOP;
    END IF;
    RETURN holdfast_taken(reply, notes);
END $$;

-- The words of a reply: five numbers and a note for each claim.
CREATE OR REPLACE FUNCTION holdfast_taken(numbers bigint[], notes text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    reply text := '';
BEGIN
    FOR i IN 1 .. cardinality(notes) LOOP
        reply := reply || ',' || array_to_string(numbers[5 * i - 4 : 5 * i], ',') || ',' || notes[i];
    END LOOP;
    RETURN substr(reply, 2);
END $$;
