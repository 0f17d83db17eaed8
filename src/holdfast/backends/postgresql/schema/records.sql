-- Records: small values with versions, which stay when nobody holds a lock. The rules are in `holdfast/record.py`.
--
-- 1. Whoever makes or deletes a record holds an advisory lock of its name until the commit, so the clock that a version is
--    made from was read when everybody before had committed: versions grow also across a delete. It waits for one other
--    lock at most, the row's (a touch has it), and for none once it has written: nobody waits in a circle. A change needs
--    no more than the row's lock: its version follows that of the row.
-- 2. Whoever finds a record where it wanted to make one has locked nothing, and written nothing.
-- 3. A touch locks the rows of its owner, in the order of their names.
-- 4. A record whose time is over is not there. It is removed by those who add others, two with each, so there are always
--    fewer. Rows that somebody else has locked are left out.

CREATE TABLE IF NOT EXISTS holdfast_record (
    name        text COLLATE "C" PRIMARY KEY,
    version     bigint NOT NULL,
    data        bytea  NOT NULL,
    owner       text   NOT NULL,
    alive_until bigint NOT NULL,
    kept_until  bigint NOT NULL,
    keep        bigint NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS holdfast_record_kept_until ON holdfast_record (kept_until);

-- Remove two whose time is over. Without the setting a table that was small when it was planned is read from end to end.
CREATE OR REPLACE FUNCTION holdfast_forget_records(now bigint) RETURNS void LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    DELETE FROM holdfast_record WHERE ctid = ANY (ARRAY(
        SELECT r.ctid FROM holdfast_record r WHERE r.kept_until <= now ORDER BY r.kept_until LIMIT 2
        FOR UPDATE SKIP LOCKED));
END $$;

-- Write if the version is the expected one (0: there is none); delete, where `data_` is NULL. Whether that was done, and
-- what is there then; of what was written only the version and how long it is alive.
CREATE OR REPLACE FUNCTION holdfast_swap_record(
    n text, expected bigint, data_ bytea, owner_ text, ttl bigint, keep_ bigint,
    OUT done boolean, OUT there_version bigint, OUT there_data text, OUT there_owner text, OUT remaining bigint
) LANGUAGE plpgsql AS $$
DECLARE
    now   bigint;
    alive bigint;
BEGIN
    IF expected = 0 THEN  -- mostly there is a result: see rule 2
        now := holdfast_now();
        SELECT false, r.version, encode(r.data, 'hex'), r.owner, greatest(0, r.alive_until - now)
            INTO done, there_version, there_data, there_owner, remaining
            FROM holdfast_record r WHERE r.name = n AND r.kept_until > now;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF expected = 0 OR data_ IS NULL THEN
        PERFORM pg_advisory_xact_lock(1752132449, hashtext(n));  -- two numbers: session locks have one
    END IF;
    now := holdfast_now();
    alive := CASE WHEN ttl > 0 THEN now + ttl ELSE 0 END;
    IF data_ IS NULL THEN
        DELETE FROM holdfast_record r WHERE r.name = n AND CASE WHEN r.kept_until > now THEN r.version ELSE 0 END = expected;
        done := FOUND OR (expected = 0 AND NOT EXISTS (SELECT 1 FROM holdfast_record r WHERE r.name = n));
    ELSIF expected = 0 THEN
        INSERT INTO holdfast_record AS r VALUES (n, now, data_, owner_, alive, now + keep_, keep_)
            ON CONFLICT (name) DO UPDATE SET version = greatest(r.version + 1, excluded.version), data = excluded.data,
                owner = excluded.owner, alive_until = excluded.alive_until, kept_until = excluded.kept_until,
                keep = excluded.keep
            WHERE r.kept_until <= now
            RETURNING r.version INTO there_version;
        done := FOUND;
        PERFORM holdfast_forget_records(now);
    ELSE
        UPDATE holdfast_record r SET version = greatest(r.version + 1, now), data = data_, owner = owner_,
                alive_until = alive, kept_until = now + keep_, keep = keep_
            WHERE r.name = n AND r.version = expected AND r.kept_until > now
            RETURNING r.version INTO there_version;
        done := FOUND;
    END IF;
    remaining := ttl;
    IF NOT done THEN
        SELECT r.version, encode(r.data, 'hex'), r.owner, greatest(0, r.alive_until - now)
            INTO there_version, there_data, there_owner, remaining
            FROM holdfast_record r WHERE r.name = n AND r.kept_until > now;
    END IF;
END $$;

-- Have these records live for another ttl, each if it is this owner's. For each whether it was (t or f), in one word.
CREATE OR REPLACE FUNCTION holdfast_touch_records(names text[], owners text[], ttls bigint[]) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    now     bigint := holdfast_now();
    touched text[] := array_fill('f'::text, ARRAY[cardinality(names)]);
    step    record;
BEGIN
    FOR step IN SELECT a.n, a.o, a.t, a.i FROM unnest(names, owners, ttls) WITH ORDINALITY AS a(n, o, t, i)
                ORDER BY a.n COLLATE "C" LOOP
        UPDATE holdfast_record r SET alive_until = now + step.t, kept_until = now + r.keep
            WHERE r.name = step.n AND r.owner = step.o AND r.kept_until > now;
        IF FOUND THEN
            touched[step.i] := 't';
        END IF;
    END LOOP;
    RETURN array_to_string(touched, '');
END $$;
