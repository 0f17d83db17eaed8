-- What becomes of a claim that stands in a line: extended, released, evicted.

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
        SELECT a.n, a.o, a.t, a.i, c.place FROM unnest(names, owners, tokens) WITH ORDINALITY AS a(n, o, t, i)
        LEFT JOIN LATERAL (SELECT s.place FROM holdfast_claim s WHERE s.name = a.n AND s.place = 0 AND s.owner = a.o
                           UNION ALL
                           SELECT q.place FROM holdfast_claim q WHERE q.queued = a.o AND q.name = a.n) c ON true
    ), held AS (
        UPDATE holdfast_claim c SET expires = now + c.ttl FROM asked a
        WHERE c.name = a.n AND c.place = a.place AND c.token = a.t AND c.token > 0 AND c.expires > now AND NOT c.evicted
        RETURNING a.i
    )
    SELECT array_agg(CASE WHEN held.i IS NOT NULL THEN 'held'
                          WHEN c.owner IS NULL OR c.token = 0 OR c.token <> a.t THEN 'refused'
                          WHEN c.evicted THEN 'evicted' ELSE 'expired' END ORDER BY a.i)
    INTO reply
    FROM asked a LEFT JOIN held USING (i) LEFT JOIN holdfast_claim c ON held.i IS NULL AND c.name = a.n AND c.place = a.place;
    RETURN reply;
END $$;

-- Leave the line, waiting or holding; a hold may linger. Whether it was held until now (t or f), and who of the
-- coordinator that asks was promoted by that. `waited`: it had to wait for its turn, so others are likely to wait now.
CREATE OR REPLACE FUNCTION holdfast_release(n text, o text, linger bigint, home text, waited boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now    bigint := holdfast_now();
    seat   holdfast_claim;
    step   record;
    token_ bigint;
    held   boolean := false;
BEGIN
    IF linger = 0 AND NOT waited THEN  -- the uncontended release
        UPDATE holdfast_claim c SET owner = NULL, token = 0,
                note = CASE WHEN c.unrecovered THEN c.note ELSE 'released:' || c.token || ':' || c.owner END
            WHERE c.ctid = (SELECT s.ctid FROM holdfast_claim s WHERE s.name >= n AND s.name <= n AND s.place < 1
                            ORDER BY s.name DESC, s.place DESC LIMIT 1)  -- the newest first, see `take.sql`
              AND c.owner = o AND c.token > 0 AND c.expires > now AND NOT c.evicted
              AND NOT c.crowded;
        IF FOUND THEN
            RETURN 't';
        END IF;
    END IF;
    SELECT * INTO seat FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'f';
    END IF;
    now := holdfast_now();
    IF NOT seat.crowded OR seat.quiet <= now OR seat.quiet IS NULL THEN
        seat := holdfast_count(seat, now);
    END IF;
    IF linger > 0 THEN
        UPDATE holdfast_claim c SET owner = '~' || o, expires = now + linger, delay = 0, wake = ''
            WHERE c.name = n AND (c.place = 0 AND c.owner = o OR c.queued = o)
              AND c.token > 0 AND c.expires > now AND NOT c.evicted
            RETURNING c.place = 0, c.token INTO held, token_;
        IF held THEN
            seat.owner := '~' || o;
        END IF;
        held := held IS NOT NULL;
        IF held THEN
            seat.quiet := least(seat.quiet, now + linger);
            seat := holdfast_note(seat, 'released', token_, o, false);
        END IF;
    END IF;
    IF NOT held THEN
        step := holdfast_leave(seat, o, now, true);
        seat := step.seat;
        held := step.held;
    END IF;
    step := holdfast_promote(seat, now, '', home);
    RETURN CASE WHEN held THEN 't' ELSE 'f' END || step.told;
END $$;

-- End the hold with this token. Whether there was one.
CREATE OR REPLACE FUNCTION holdfast_evict(n text, t bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    now   bigint := holdfast_lock(ARRAY[n]);
    held  record;
    ended boolean;
    seat  holdfast_claim;
BEGIN
    UPDATE holdfast_claim c SET evicted = true, expires = now
        WHERE c.name = n AND c.token = t AND c.token > 0 AND c.expires > now AND NOT c.evicted
        RETURNING c.owner, c.robust INTO held;
    ended := FOUND;
    seat := holdfast_recount(n, now);
    IF ended AND left(held.owner, 1) <> '~' THEN
        seat := holdfast_note(seat, 'evicted', t, held.owner, held.robust);
    END IF;
    PERFORM holdfast_promote(seat, now, '', '');
    RETURN ended;
END $$;

-- The holder with this token has put things right: the name is not unrecovered any more. Whether it holds it.
CREATE OR REPLACE FUNCTION holdfast_recover(n text, o text, t bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    now bigint;
BEGIN
    PERFORM 1 FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    now := holdfast_now();
    PERFORM 1 FROM holdfast_claim c WHERE c.name = n AND (c.place = 0 AND c.owner = o OR c.queued = o)
        AND c.token = t AND c.token > 0 AND c.expires > now AND NOT c.evicted;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE holdfast_claim c SET unrecovered = false WHERE c.name = n AND c.place = 0 AND c.unrecovered;
    RETURN true;
END $$;
