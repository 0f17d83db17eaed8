-- What one coordinator asks for many who wait in it. Each statement takes names and owners, one of each for a claim.

-- Keep these places for another patience. For each the five numbers of a take; those who have no place behind a seat, or do
-- not wait any more, have 0 for all five: each of them is to ask by itself. Then whom of this coordinator it has promoted.
-- One update for each, and not one for all: that would be planned with a table that is empty, or nearly, and then read
-- all who wait for each that looks.
CREATE OR REPLACE FUNCTION holdfast_look_all(names text[], owners text[], home text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now     bigint;
    reply   bigint[] := array_fill(0::bigint, ARRAY[5 * cardinality(names)]);
    told    text := '';
    seat    holdfast_claim;
    first_  integer;
    behind_ integer;
    line    record;
    step    record;
    place_  integer;
    patience_ bigint;
    at      integer;
BEGIN
    PERFORM 1 FROM holdfast_claim c WHERE c.place = 0 AND c.name = ANY (names) ORDER BY c.name FOR UPDATE;
    now := holdfast_now();
    FOR line IN SELECT a.n, array_agg(a.o) AS owners, array_agg(a.i) AS numbers
                FROM unnest(names, owners) WITH ORDINALITY AS a(n, o, i) GROUP BY a.n LOOP
        SELECT * INTO seat FROM holdfast_claim c WHERE c.name = line.n AND c.place = 0;
        CONTINUE WHEN NOT FOUND;
        IF NOT seat.crowded OR seat.quiet <= now OR seat.quiet IS NULL THEN
            seat := holdfast_count(seat, now);
        END IF;
        IF seat.used < seat.capacity THEN  -- first: whoever is promoted is told a token above the mark of its last look
            step := holdfast_promote(seat, now, '', home);
            seat := step.seat;
            told := told || step.told;
        END IF;
        first_ := seat.first;
        behind_ := seat.behind;
        step := holdfast_front(seat, now);
        seat := step.seat;
        FOR i IN 1 .. cardinality(line.owners) LOOP
            UPDATE holdfast_claim c SET expires = now + c.patience, wake = home
                WHERE c.queued = line.owners[i] AND c.name = line.n AND c.token = 0 AND c.expires > now
                RETURNING c.place, c.patience INTO place_, patience_;
            CONTINUE WHEN NOT FOUND;
            at := 5 * line.numbers[i];
            reply[at - 3] := patience_ / 3;
            IF step.front = place_ AND seat.holds > 0 THEN
                reply[at - 3] := least(patience_ / 3, greatest(1000, seat.quiet - now + 500));
            END IF;
            reply[at - 2] := seat.holds + place_ - step.front;
            reply[at] := seat.mark;
        END LOOP;
        IF seat.behind <> behind_ OR seat.first <> first_ THEN
            PERFORM holdfast_save(seat);
        END IF;
    END LOOP;
    RETURN array_to_string(reply, ',') || told;
END $$;

-- Leave, waiting or holding; whoever may follow is promoted when all have left. For each whether it was held until now (t
-- or f), in one word; then whom of this coordinator it has promoted.
CREATE OR REPLACE FUNCTION holdfast_leave_all(names text[], owners text[], home text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now  bigint;
    held text[] := array_fill('f'::text, ARRAY[cardinality(names)]);
    told text := '';
    seat holdfast_claim;
    line record;
    step record;
BEGIN
    PERFORM 1 FROM holdfast_claim c WHERE c.place = 0 AND c.name = ANY (names) ORDER BY c.name FOR UPDATE;
    now := holdfast_now();
    FOR line IN SELECT a.n, array_agg(a.o) AS owners, array_agg(a.i) AS numbers
                FROM unnest(names, owners) WITH ORDINALITY AS a(n, o, i) GROUP BY a.n LOOP
        SELECT * INTO seat FROM holdfast_claim c WHERE c.name = line.n AND c.place = 0;
        CONTINUE WHEN NOT FOUND;
        IF NOT seat.crowded OR seat.quiet <= now OR seat.quiet IS NULL THEN
            seat := holdfast_count(seat, now);
        END IF;
        FOR i IN 1 .. cardinality(line.owners) LOOP
            step := holdfast_leave(seat, line.owners[i], now, true);
            seat := step.seat;
            IF step.held THEN
                held[line.numbers[i]] := 't';
            END IF;
        END LOOP;
        step := holdfast_promote(seat, now, '', home);
        told := told || step.told;
    END LOOP;
    RETURN array_to_string(held, '') || told;
END $$;
