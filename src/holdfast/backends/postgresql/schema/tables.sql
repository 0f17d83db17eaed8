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
-- Other roles need: GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_claim, holdfast_rate, holdfast_session,
-- holdfast_session_waiter, holdfast_session_ceiling, holdfast_session_floor; GRANT SELECT ON holdfast_meta.

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

CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;
