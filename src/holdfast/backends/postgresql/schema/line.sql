-- The line of one name: what the verbs are made of. In all of them the seat is locked by whoever calls, or here. `seat` is
-- the seat's row as the caller has read it: it is changed there, and written once, by `holdfast_save`.

-- Of versions before, which kept no counts, or no notes.
DROP FUNCTION IF EXISTS holdfast_sweep(text, bigint), holdfast_promote(text, bigint, text, text),
    holdfast_queued(text, integer, bigint, bigint), holdfast_look(text, text, bigint), holdfast_remove(text, text),
    holdfast_leave(holdfast_claim, text, bigint);

-- When nothing of a claim matters any more.
CREATE OR REPLACE FUNCTION holdfast_end(token bigint, evicted boolean, expires bigint, delay bigint, ttl bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN token = 0 THEN expires WHEN evicted THEN expires + greatest(delay, ttl) ELSE expires + delay END
$$;

-- Whether a claim was held until its time was over. Who has let go and lingers ("~") has left its note before, and so has
-- who was evicted.
CREATE OR REPLACE FUNCTION holdfast_expired(token bigint, evicted boolean, owner text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT token > 0 AND NOT evicted AND left(owner, 1) <> '~'
$$;

-- Note in a seat how a hold has ended. What is unrecovered stays so. The seat is not written.
CREATE OR REPLACE FUNCTION holdfast_note(INOUT seat holdfast_claim, how text, token bigint, owner text, robust boolean)
LANGUAGE plpgsql AS $$
BEGIN
    IF how <> 'released' OR NOT seat.unrecovered THEN
        seat.note := how || ':' || token || ':' || owner;
    END IF;
    seat.unrecovered := seat.unrecovered OR robust AND how <> 'released';
END $$;

-- Lock the seats of these names, in order; make those that are missing. Answers with the time after that.
CREATE OR REPLACE FUNCTION holdfast_lock(names text[]) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    -- `WHERE false` updates nothing, and locks the row all the same: one pass in one order, whether a seat is there or not.
    INSERT INTO holdfast_claim (name, place) SELECT DISTINCT ON (n COLLATE "C") n, 0 FROM unnest(names) n ORDER BY n COLLATE "C"
        ON CONFLICT (name, place) DO UPDATE SET place = 0 WHERE false;
    RETURN holdfast_now();
END $$;

-- Drop what is over among the holds, and count: for whoever has read a seat that is not crowded, or whose `quiet` has
-- passed. This is written, unless all there is to say is in the row anyway. Holds stand before the first who waits, unless some have overtaken.
CREATE OR REPLACE FUNCTION holdfast_count(INOUT seat holdfast_claim, now bigint) LANGUAGE plpgsql AS $$
DECLARE
    until integer := CASE WHEN seat.quiet IS NULL OR seat.overtakers > 0 THEN 2147483647 ELSE seat.first END;
    line  record;
    over  record;
    held  bigint := 0;  -- by the seat's own claim, if its time is over
    ended bigint := 0;
BEGIN
    IF seat.owner IS NOT NULL AND holdfast_end(seat.token, seat.evicted, seat.expires, seat.delay, seat.ttl) <= now THEN
        IF holdfast_expired(seat.token, seat.evicted, seat.owner) THEN
            held := seat.token;
            seat := holdfast_note(seat, 'expired', seat.token, seat.owner, seat.robust);
        END IF;
        seat.owner := NULL;
        seat.token := 0;
        ended := 1;
    END IF;
    seat.holds := CASE WHEN seat.token > 0 THEN 1 ELSE 0 END;
    seat.used := CASE WHEN seat.token > 0 AND seat.expires + seat.delay > now THEN seat.weight ELSE 0 END;
    seat.quiet := CASE WHEN seat.token = 0 THEN 9223372036854775807
                       WHEN seat.used > 0 THEN seat.expires + seat.delay
                       ELSE holdfast_end(seat.token, seat.evicted, seat.expires, seat.delay, seat.ttl) END;
    IF NOT seat.crowded THEN
        seat.first := CASE WHEN seat.owner IS NOT NULL AND seat.token = 0 THEN 0 ELSE 1 END;
        seat.last := 0;
        seat.behind := 0;
        seat.overtakers := 0;
        IF ended > 0 THEN
            PERFORM holdfast_save(seat);
        END IF;
        RETURN;
    END IF;
    ended := 0;
    FOR over IN DELETE FROM holdfast_claim c WHERE c.name = seat.name AND c.place > 0 AND c.place < until
        AND holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) <= now
        RETURNING c.token, c.owner, c.robust, holdfast_expired(c.token, c.evicted, c.owner) AS held
    LOOP
        ended := ended + 1;
        IF over.held AND over.token > held THEN  -- of several that have ended, the last one to be granted is told
            held := over.token;
            seat := holdfast_note(seat, 'expired', over.token, over.owner, over.robust);
        ELSIF over.held THEN
            seat.unrecovered := seat.unrecovered OR over.robust;
        END IF;
    END LOOP;
    SELECT count(*) AS rows, count(*) FILTER (WHERE c.token > 0) AS holds, max(c.place) AS last,
           coalesce(sum(c.weight) FILTER (WHERE c.token > 0 AND c.expires + c.delay > now), 0) AS used,
           min(CASE WHEN c.token = 0 THEN NULL WHEN c.expires + c.delay > now THEN c.expires + c.delay
                    ELSE holdfast_end(c.token, c.evicted, c.expires, c.delay, c.ttl) END) AS quiet,
           min(c.place) FILTER (WHERE c.token = 0) AS first, count(*) FILTER (WHERE NOT c.fair) AS overtakers
        INTO line FROM holdfast_claim c WHERE c.name = seat.name AND c.place > 0 AND c.place < until;
    seat.holds := seat.holds + line.holds;
    seat.used := seat.used + line.used;
    seat.quiet := least(seat.quiet, line.quiet);
    IF until = 2147483647 THEN
        seat.first := CASE WHEN seat.owner IS NOT NULL AND seat.token = 0 THEN 0 ELSE coalesce(line.first, line.last + 1, 1) END;
        seat.last := greatest(seat.last, line.last, 0);
        seat.behind := line.rows;
        seat.overtakers := line.overtakers;
    ELSE
        seat.behind := seat.behind - ended;
    END IF;
    PERFORM holdfast_save(seat);
END $$;

-- The seat, after a look at the whole line: whoever is over is dropped, waiting or holding.
CREATE OR REPLACE FUNCTION holdfast_recount(n text, now bigint) RETURNS holdfast_claim LANGUAGE plpgsql AS $$
DECLARE
    seat holdfast_claim;
BEGIN
    SELECT * INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0;
    seat.quiet := NULL;
    RETURN holdfast_count(seat, now);
END $$;

-- The first who waits; those before it whose time is over are dropped. `front` is NULL if
-- nobody waits.
CREATE OR REPLACE FUNCTION holdfast_front(INOUT seat holdfast_claim, now bigint, OUT front integer)
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    until bigint;
BEGIN
    LOOP
        SELECT c.place, c.expires INTO front, until FROM holdfast_claim c
            WHERE c.name = seat.name AND c.place >= seat.first AND c.token = 0 AND c.owner IS NOT NULL
            ORDER BY c.place LIMIT 1;
        seat.first := coalesce(front, seat.last + 1);
        EXIT WHEN front IS NULL OR until > now;
        IF front = 0 THEN
            seat.owner := NULL;
        ELSE
            DELETE FROM holdfast_claim c WHERE c.name = seat.name AND c.place = front;
            seat.behind := seat.behind - 1;
        END IF;
        seat.first := front + 1;
    END LOOP;
END $$;

-- Grant, in order, whatever fits now; and tell those who are told by a push: all but `asker`, who reads the reply. Who
-- waits in the coordinator that asks (its channel is `home`) needs no NOTIFY, which wakes every listening session: it is
-- told by the reply, ' owner token note' for each. The seat is written.
CREATE OR REPLACE FUNCTION holdfast_promote(INOUT seat holdfast_claim, now bigint, asker text, home text, OUT told text)
LANGUAGE plpgsql SET enable_sort = off AS $$
DECLARE
    waiting record;
    next    integer := seat.first - 1;
    blocked boolean := false;
BEGIN
    told := '';
    WHILE seat.used < seat.capacity LOOP
        SELECT c.place, c.owner, c.weight, c.wake, c.expires, c.delay INTO waiting FROM holdfast_claim c
            WHERE c.name = seat.name AND c.place > next AND c.token = 0 AND c.owner IS NOT NULL
              AND NOT (blocked AND c.fair)
            ORDER BY c.place LIMIT 1;
        IF NOT FOUND THEN
            IF NOT blocked THEN
                seat.first := seat.last + 1;
            END IF;
            EXIT;
        END IF;
        next := waiting.place;
        IF waiting.expires <= now THEN
            IF next = 0 THEN
                seat.owner := NULL;
            ELSE
                DELETE FROM holdfast_claim c WHERE c.name = seat.name AND c.place = next;
                seat.behind := seat.behind - 1;
            END IF;
        ELSIF waiting.weight <= seat.capacity - seat.used THEN
            seat.mark := greatest(seat.mark + 1, now);
            UPDATE holdfast_claim c SET token = seat.mark, since = now WHERE c.name = seat.name AND c.place = next;
            IF next = 0 THEN
                seat.token := seat.mark;
            END IF;
            seat.holds := seat.holds + 1;
            seat.used := seat.used + waiting.weight;
            seat.quiet := least(seat.quiet, waiting.expires + waiting.delay);
            IF waiting.wake = '' OR waiting.owner = asker THEN
                NULL;
            ELSIF waiting.wake = home THEN
                told := told || ' ' || waiting.owner || ' ' || seat.mark || ' ' || coalesce(seat.note, '-');
            ELSE
                PERFORM pg_notify(waiting.wake, waiting.owner || ' ' || seat.mark || ' ' || coalesce(seat.note, '-'));
            END IF;
        ELSE
            IF NOT blocked THEN
                seat.first := next;
            END IF;
            EXIT WHEN seat.overtakers = 0;
            blocked := true;
        END IF;
        IF NOT blocked THEN
            seat.first := next + 1;
        END IF;
    END LOOP;
    PERFORM holdfast_save(seat);
END $$;

-- Write what has been changed in a seat. With nobody behind it, the counts say nothing that the row does not.
CREATE OR REPLACE FUNCTION holdfast_save(seat holdfast_claim) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE holdfast_claim c SET
        mark = seat.mark, owner = seat.owner, token = seat.token, capacity = seat.capacity, crowded = seat.behind > 0,
        first = seat.first, last = seat.last, behind = seat.behind, holds = seat.holds, used = seat.used,
        quiet = seat.quiet, overtakers = seat.overtakers, note = seat.note, unrecovered = seat.unrecovered
        WHERE c.name = seat.name AND c.place = 0;
END $$;

-- Take a claim out of its line, whatever it is; `held`: it was held until now. `told`: its owner knew of its grant, so how
-- it ended is noted. The seat is not written.
CREATE OR REPLACE FUNCTION holdfast_leave(INOUT seat holdfast_claim, o text, now bigint, told boolean, OUT held boolean)
LANGUAGE plpgsql AS $$
DECLARE
    gone record;
BEGIN
    IF seat.owner = o THEN
        gone := seat;
        seat.owner := NULL;
        seat.token := 0;
        seat.first := greatest(seat.first, 1);
    ELSE
        DELETE FROM holdfast_claim c WHERE c.queued = o AND c.name = seat.name RETURNING * INTO gone;
        IF NOT FOUND THEN
            held := false;
            RETURN;
        END IF;
        seat.behind := seat.behind - 1;
    END IF;
    held := gone.token > 0 AND gone.expires > now AND NOT gone.evicted;
    IF told AND gone.token > 0 AND NOT gone.evicted THEN
        seat := holdfast_note(seat, CASE WHEN held THEN 'released' ELSE 'expired' END, gone.token, o, gone.robust);
    END IF;
    IF gone.token > 0 THEN
        seat.holds := seat.holds - 1;
        IF gone.expires + gone.delay > now THEN
            seat.used := seat.used - gone.weight;
        END IF;
        IF seat.holds = 0 THEN
            seat.quiet := 9223372036854775807;
        END IF;
    END IF;
END $$;
