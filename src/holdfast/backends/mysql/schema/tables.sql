-- The lock table of MariaDB: tables, and one procedure per verb. Made for MariaDB 10.6 and later.
--
-- A name's line is its rows in `holdfast_claim`, ordered by `place`. Place 0 is the name's seat: it stays when the line
-- is empty, because it carries the mark (the last token), and it hosts the claim that comes to an empty line. So an
-- uncontended take and an uncontended release write one row each, in place, each by one committed update: plain
-- statements (`codec.py`), prepared, because a CALL costs twice as much. What they leave undone the procedures do.
--
-- 1. Whoever changes anything else in a line holds the row lock of its seat. Several seats are locked in the order of
--    their names, so two requests never wait for each other in a circle.
-- 2. A transaction first locks its seats, and reads after that: its snapshot is made by the first read that does not
--    lock, so it sees what was committed last, under READ COMMITTED and under REPEATABLE READ. Only single rows of its own
--    lines are locked: a locking scan of a range of places would end on (and wait for) the next name. `FORCE INDEX`, or a
--    small table is scanned.
-- 3. Times are microseconds of the server's clock (UTC: no zone, no summer time), read after the seat was locked. No
--    client's clock is looked at. The rules of the line are those of `holdfast/_core/line.py`; a property test
--    compares every reply.
-- 4. A promoted claim is told by a row in `holdfast_push`, in the same transaction. After the commit the connection
--    that listens for it (it holds the user lock `holdfast-ears-…`) is roused with KILL QUERY (`ears.sql`). It looks
--    by itself four times a second, so a rousing that is lost or not allowed costs a quarter of a second.
-- 5. The seat of a name with places behind it (`crowded`) says what else would take a look at all of them: `first`, `last`,
--    `behind`, `holds`, `used`, `quiet`, `overtakers`. So what a verb reads and writes does not grow with those who wait:
--    the seat, the asker's own row (by the index on `queued`), and whom it grants. A waiter whose time is over is dropped
--    once it is the first; holds that are over are looked for when `quiet` has passed.
-- 6. The seat says how the last hold ended (`note`), and each grant tells it. A `robust` hold that ends uncleanly leaves the
--    name `unrecovered`: its note stays until a holder says that it has put things right, or the next hold ends uncleanly.
-- 7. A procedure that fails rolls back what it has done. Whether one that was killed did so is not for us to rely on: the
--    client closes its connection then, and the server rolls back.
--
-- Text is binary: names differ when their bytes do. Other users need: GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE on
-- the database (or on these tables and procedures).

SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';

CREATE TABLE IF NOT EXISTS holdfast_claim (
    name     varbinary(1100) NOT NULL,
    place    bigint  NOT NULL,
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
    capacity int     NOT NULL DEFAULT 1,      -- of a seat
    weight   int     NOT NULL DEFAULT 1,
    pid      int     NOT NULL DEFAULT 0,
    wake     bigint  NOT NULL DEFAULT 0,      -- whose ears hear of its promotion
    owner    varbinary(255),                  -- NULL where a seat hosts nobody
    actor    varbinary(255) NOT NULL DEFAULT '',
    mode     varbinary(64)  NOT NULL DEFAULT 'lock',
    host     varbinary(255) NOT NULL DEFAULT '',
    PRIMARY KEY (name, place)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

-- Of a seat with places behind it; NULL in all other rows, and in a line that an older holdfast has left, which is
-- counted by whoever comes next.
ALTER TABLE holdfast_claim
    ADD COLUMN IF NOT EXISTS first      bigint,  -- nobody waits before this place
    ADD COLUMN IF NOT EXISTS last       bigint,  -- no place behind this one was given
    ADD COLUMN IF NOT EXISTS behind     bigint,  -- rows behind the seat
    ADD COLUMN IF NOT EXISTS holds      bigint,  -- rows with a token, the seat's own among them
    ADD COLUMN IF NOT EXISTS used       bigint,  -- the weight of those that count
    ADD COLUMN IF NOT EXISTS quiet      bigint,  -- until then no hold ends by itself; its renewals do not move this
    ADD COLUMN IF NOT EXISTS overtakers bigint,  -- as many that are not fair have come, or fewer
    -- Of a place behind the seat: its owner. The seat has none, so that a take and a release change no index.
    ADD COLUMN IF NOT EXISTS queued varbinary(255) AS (IF(place > 0, owner, NULL)) STORED,
    ADD COLUMN IF NOT EXISTS robust boolean NOT NULL DEFAULT false,
    -- Of a seat: how:token:owner, where how is released, expired or evicted; NULL: nobody has held the name.
    ADD COLUMN IF NOT EXISTS note varbinary(320),
    ADD COLUMN IF NOT EXISTS unrecovered boolean NOT NULL DEFAULT false,
    ADD INDEX IF NOT EXISTS queued (queued);

-- What is on its way to the waiters of a coordinator.
CREATE TABLE IF NOT EXISTS holdfast_push (
    wake  bigint NOT NULL,
    owner varbinary(255) NOT NULL,
    token bigint NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (wake, owner)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;
ALTER TABLE holdfast_push ADD COLUMN IF NOT EXISTS note varbinary(320);

-- One number per limiter: the theoretical arrival time of GCRA.
CREATE TABLE IF NOT EXISTS holdfast_rate (
    name varbinary(1100) PRIMARY KEY,
    tat  bigint NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC STATS_AUTO_RECALC = 0;

-- cluster: the identity of this database, for sequencers. version: holdfast works with this one only. tidied: where
-- housekeeping stopped.
CREATE TABLE IF NOT EXISTS holdfast_meta (
    word  varbinary(64) PRIMARY KEY,
    value varbinary(1100) NOT NULL
) ENGINE = InnoDB;
