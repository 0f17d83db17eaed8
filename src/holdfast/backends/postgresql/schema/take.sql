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
    -- The index has an entry for every page that a version of the seat was in, the oldest first, and none of them can be
    -- dropped while a transaction is open somewhere. So this looks at the newest, which a search for "= n" comes to last.
    UPDATE holdfast_claim c SET
        mark = greatest(c.mark + 1, now), token = greatest(c.mark + 1, now), owner = o, weight = weight_,
        capacity = capacity_, fair = fair_, ttl = ttl_, patience = patience_, delay = delay_, since = now,
        expires = now + ttl_, evicted = false, wake = '', actor = actor_, mode = mode_, host = host_, pid = pid_
    WHERE c.ctid = (SELECT s.ctid FROM holdfast_claim s WHERE s.name >= n AND s.name <= n AND s.place < 1
                    ORDER BY s.name DESC, s.place DESC LIMIT 1)
      AND c.owner IS NULL AND NOT c.crowded
    RETURNING c.token INTO granted;
    IF FOUND THEN
        RETURN ARRAY[granted, 0, 0, 0, 0];
    END IF;
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
            PERFORM holdfast_promote(names[i], now, owners[i], '');
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
                PERFORM holdfast_promote(names[i], now, '', '');
            END IF;
            reply[5 * i - 4] := 0;
        END LOOP;
    END IF;
    RETURN reply;
END $$;
