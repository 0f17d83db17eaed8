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

-- Leave the line, waiting or holding; a hold may linger. Whether it was held until now (t or f), and who of the
-- coordinator that asks was promoted by that. `waited`: it had to wait for its turn, so others are likely to wait now.
CREATE OR REPLACE FUNCTION holdfast_release(n text, o text, linger bigint, home text, waited boolean)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    now  bigint := holdfast_now();
    seat record;
    held boolean := false;
BEGIN
    IF linger = 0 AND NOT waited THEN  -- the uncontended release
        UPDATE holdfast_claim c SET owner = NULL, token = 0
            WHERE c.ctid = (SELECT s.ctid FROM holdfast_claim s WHERE s.name >= n AND s.name <= n AND s.place < 1
                            ORDER BY s.name DESC, s.place DESC LIMIT 1)  -- the newest first, see `take.sql`
              AND c.owner = o AND c.token > 0 AND c.expires > now AND NOT c.evicted
              AND NOT c.crowded;
        IF FOUND THEN
            RETURN 't';
        END IF;
    END IF;
    SELECT c.owner, c.token, c.expires, c.evicted INTO seat
        FROM holdfast_claim c WHERE c.name = n AND c.place = 0 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'f';
    END IF;
    now := holdfast_now();
    IF linger > 0 THEN
        UPDATE holdfast_claim c SET owner = '~' || o, expires = now + linger, delay = 0, wake = ''
            WHERE c.name = n AND c.owner = o AND c.token > 0 AND c.expires > now AND NOT c.evicted;
        held := FOUND;
    END IF;
    IF NOT held AND seat.owner = o THEN
        held := seat.token > 0 AND seat.expires > now AND NOT seat.evicted;
        UPDATE holdfast_claim c SET owner = NULL, token = 0 WHERE c.name = n AND c.place = 0;
    ELSIF NOT held THEN
        DELETE FROM holdfast_claim c WHERE c.name = n AND c.owner = o AND c.place > 0
            RETURNING c.token > 0 AND c.expires > now AND NOT c.evicted INTO held;
        held := coalesce(held, false);
    END IF;
    RETURN CASE WHEN held THEN 't' ELSE 'f' END || holdfast_promote(n, now, '', home);
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
    PERFORM holdfast_promote(n, now, '', '');
    RETURN ended;
END $$;
