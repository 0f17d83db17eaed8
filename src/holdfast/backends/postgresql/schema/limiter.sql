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
