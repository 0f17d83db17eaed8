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
-- 4. The seat of a name with places behind it (`crowded`) says what else would take a look at all of them: `first`, `last`,
--    `behind`, `holds`, `used`, `quiet`, `overtakers`. So what a verb reads and writes does not grow with those who wait:
--    the seat, the asker's own row (by the index on `queued`), and whom it grants. A waiter whose time is over is dropped
--    once it is the first; holds that are over are looked for when `quiet` has passed.
-- 5. A promoted claim is told in the same transaction: NOTIFY on its owner's channel (`wake`), with owner, token and note.
--    It is delivered if, and only if, the promotion is committed.
-- 6. The seat says how the last hold ended (`note`), and each grant tells it. A `robust` hold that ends uncleanly leaves the
--    name `unrecovered`: its note stays until a holder says that it has put things right, or the next hold ends uncleanly.
--
-- The rules of the line are those of `holdfast/_core/line.py`; a property test compares every reply.
-- Other roles need: GRANT SELECT, INSERT, UPDATE, DELETE ON holdfast_claim, holdfast_rate, holdfast_record,
-- holdfast_session, holdfast_session_waiter, holdfast_session_ceiling, holdfast_session_floor; GRANT SELECT ON holdfast_meta.

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

-- Of a seat with places behind it; NULL in all other rows, and in a line that an older holdfast has left, which is
-- counted by whoever comes next.
ALTER TABLE holdfast_claim
    ADD COLUMN IF NOT EXISTS first      integer,  -- nobody waits before this place
    ADD COLUMN IF NOT EXISTS last       integer,  -- no place behind this one was given
    ADD COLUMN IF NOT EXISTS behind     integer,  -- rows behind the seat
    ADD COLUMN IF NOT EXISTS holds      integer,  -- rows with a token, the seat's own among them
    ADD COLUMN IF NOT EXISTS used       bigint,   -- the weight of those that count
    ADD COLUMN IF NOT EXISTS quiet      bigint,   -- until then no hold ends by itself; its renewals do not move this
    ADD COLUMN IF NOT EXISTS overtakers integer,  -- as many that are not fair have come, or fewer
    -- Of a place behind the seat: its owner. The seat has none, so that a take and a release change nothing that an index
    -- holds.
    ADD COLUMN IF NOT EXISTS queued text GENERATED ALWAYS AS (CASE WHEN place > 0 THEN owner END) STORED,
    ADD COLUMN IF NOT EXISTS robust boolean NOT NULL DEFAULT false,
    -- Of a seat: how:token:owner, where how is released, expired or evicted; NULL: nobody has held the name.
    ADD COLUMN IF NOT EXISTS note        text,
    ADD COLUMN IF NOT EXISTS unrecovered boolean NOT NULL DEFAULT false;

CREATE INDEX IF NOT EXISTS holdfast_claim_queued ON holdfast_claim (queued, name) WHERE queued IS NOT NULL;

CREATE OR REPLACE FUNCTION holdfast_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;
