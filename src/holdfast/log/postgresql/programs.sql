-- The statements of the log on PostgreSQL, by name. A value stands at {}.

-- Whether the tables are there, and the transaction that this is.
-- name: missing
SELECT to_regclass('holdfast_log_cursor') IS NULL AS missing, txid_current() AS here;

-- name: exists
SELECT to_regclass('holdfast_log_cursor') IS NULL AS missing;

-- Two that create the tables at once would collide.
-- name: create_lock
SELECT pg_advisory_xact_lock(7161100441930145107), txid_current() = {} AS open;

-- Locks the stream's row, or makes it. No row: this is another transaction than that of the statement before.
-- name: lock_new
INSERT INTO holdfast_log_stream AS s (stream, version, major)
SELECT CAST({} AS text), 0, 0 WHERE txid_current() = {}
ON CONFLICT (stream) DO UPDATE SET version = s.version
RETURNING s.version, true AS open;

-- name: lock_old
SELECT version, txid_current() = {} AS open FROM holdfast_log_stream WHERE stream = {} FOR UPDATE;

-- One statement: the stream's version, if it is the expected one, and the events. No row: it is not, or this is another
-- transaction, or one of the ids is there, or the cluster is another one.
-- The major is at least the id of this transaction, so readers see it only after this transaction has ended; and at
-- least the last one of the stream, so that a stream's positions rise with its versions: a transaction that got its id
-- early may append late. (Ids are looked for as of before a wait for the row. Whoever has been waited for, and has
-- committed the same ids, has changed the version.)
-- name: insert
WITH fresh (version, slot, id, type, data) AS (VALUES {rows}),
counted AS (
    UPDATE holdfast_log_stream s SET version = s.version + {}, major = greatest(txid_current() + t.shift, s.major)
    FROM holdfast_log_state t WHERE s.stream = {} AND s.version = {} AND txid_current() = {}
    AND t.system = (SELECT CAST(system_identifier AS text) FROM pg_control_system())
    AND NOT EXISTS (SELECT FROM holdfast_log l JOIN fresh f ON l.id = f.id WHERE l.stream = {})
    RETURNING s.version, s.major
),
inserted AS (
    INSERT INTO holdfast_log (major, stream, version, slot, id, type, data)
    SELECT c.major, {}, f.version, f.slot, f.id, f.type, f.data FROM fresh f CROSS JOIN counted c ORDER BY f.version
)
SELECT version FROM counted;

-- name: row
(CAST({} AS bigint), CAST({} AS bigint), CAST({} AS text), CAST({} AS text), CAST({} AS text));

-- The same for one event.
-- name: insert_one
WITH counted AS (
    UPDATE holdfast_log_stream s SET version = s.version + 1, major = greatest(txid_current() + t.shift, s.major)
    FROM holdfast_log_state t WHERE s.stream = {} AND s.version = {} AND txid_current() = {}
    AND t.system = (SELECT CAST(system_identifier AS text) FROM pg_control_system())
    AND NOT EXISTS (SELECT FROM holdfast_log l WHERE l.stream = {} AND l.id = {})
    RETURNING s.version, s.major
)
INSERT INTO holdfast_log (major, stream, version, slot, id, type, data)
SELECT c.major, {}, c.version, CAST({} AS bigint), CAST({} AS text), CAST({} AS text), CAST({} AS text) FROM counted c
RETURNING version;

-- After a restore: the next major lies behind all that were given, also to events that were truncated.
-- name: shift
UPDATE holdfast_log_state t SET system = c.system, shift = greatest(
    (SELECT max(major) FROM holdfast_log_stream), (SELECT max(major) FROM holdfast_log_cursor), t.truncated_major, 0)
FROM (SELECT CAST(system_identifier AS text) AS system FROM pg_control_system()) c WHERE t.system <> c.system;

-- name: find
SELECT id, version, type, data FROM holdfast_log WHERE stream = {} AND id IN ({list}) ORDER BY version;

-- One statement, so that what is there and the stream's version are of one moment.
-- name: read
SELECT s.version AS last, e.major, e.minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_stream s LEFT JOIN (
    SELECT * FROM holdfast_log WHERE stream = {} AND version > {} ORDER BY version LIMIT {}
) e ON true WHERE s.stream = {} ORDER BY e.version;

-- Transactions below the snapshot's xmin have ended, and no later one gets an id below it.
-- On a restored log that has not been written to yet, every event is of an ended transaction.
-- name: tail
SELECT t.truncated_major, t.truncated_minor, e.major, e.minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_state t LEFT JOIN LATERAL (
    SELECT * FROM holdfast_log l WHERE (l.major, l.minor) > ({}, {}) AND l.major < CASE
        WHEN t.system = (SELECT CAST(system_identifier AS text) FROM pg_control_system())
        THEN t.shift + txid_snapshot_xmin(txid_current_snapshot()) ELSE 9223372036854775807 END
    ORDER BY l.major, l.minor LIMIT {}
) e ON true ORDER BY e.major, e.minor;

-- name: snapshot
SELECT version, state FROM holdfast_log_snapshot WHERE stream = {} AND name = {};

-- name: read_only
SELECT current_setting('transaction_read_only') = 'on' AS read_only;

-- name: save
INSERT INTO holdfast_log_snapshot AS s (stream, name, version, state) VALUES ({}, {}, {}, {})
ON CONFLICT (stream, name) DO UPDATE SET version = excluded.version, state = excluded.state
WHERE excluded.version > s.version;

-- The oldest first, so that what is left of a stream has no hole.
-- name: truncate_stream
WITH removed AS (
    DELETE FROM holdfast_log WHERE (major, minor) IN (
        SELECT major, minor FROM holdfast_log WHERE stream = {} AND version < {} ORDER BY version LIMIT {})
    RETURNING major, minor
),
highest AS (SELECT major, minor FROM removed ORDER BY major DESC, minor DESC LIMIT 1),
marked AS (
    UPDATE holdfast_log_state t SET truncated_major = h.major, truncated_minor = h.minor
    FROM highest h WHERE (t.truncated_major, t.truncated_minor) < (h.major, h.minor)
)
SELECT count(*) AS removed FROM removed;

-- name: truncate_log
WITH removed AS (
    DELETE FROM holdfast_log WHERE (major, minor) IN (
        SELECT major, minor FROM holdfast_log WHERE (major, minor) < ({}, {}) ORDER BY major, minor LIMIT {})
    RETURNING major, minor
),
highest AS (SELECT major, minor FROM removed ORDER BY major DESC, minor DESC LIMIT 1),
marked AS (
    UPDATE holdfast_log_state t SET truncated_major = h.major, truncated_minor = h.minor
    FROM highest h WHERE (t.truncated_major, t.truncated_minor) < (h.major, h.minor)
)
SELECT count(*) AS removed FROM removed;

-- The last of the next events that `tail` would give.
-- name: window
SELECT l.major, l.minor FROM holdfast_log_state t CROSS JOIN LATERAL (
    SELECT major, minor FROM holdfast_log WHERE (major, minor) > ({}, {}) AND major < CASE
        WHEN t.system = (SELECT CAST(system_identifier AS text) FROM pg_control_system())
        THEN t.shift + txid_snapshot_xmin(txid_current_snapshot()) ELSE 9223372036854775807 END
    ORDER BY major, minor LIMIT {}
) l ORDER BY l.major DESC, l.minor DESC LIMIT 1;

-- Of one partition, up to the end of a window: nothing can appear there any more.
-- name: tail_part
SELECT t.truncated_major, t.truncated_minor, e.major, e.minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_state t LEFT JOIN (
    SELECT * FROM holdfast_log l WHERE (l.major, l.minor) > ({}, {}) AND (l.major, l.minor) <= ({}, {})
    AND mod(mod(l.slot, CAST({} AS bigint)) + CAST({} AS bigint), CAST({} AS bigint)) = {}
    ORDER BY l.major, l.minor LIMIT {}
) e ON true ORDER BY e.major, e.minor;

-- name: cursor
SELECT parts, major, minor FROM holdfast_log_cursor WHERE consumer = {} AND (parts <> {} OR part = {}) ORDER BY parts;

-- Whether an event of the partition that `tail` gives is at this position, or may have been there before it was removed.
-- name: known
SELECT COALESCE((
    SELECT mod(mod(l.slot, CAST({} AS bigint)) + CAST({} AS bigint), CAST({} AS bigint)) = {} AND l.major < CASE
        WHEN t.system = (SELECT CAST(system_identifier AS text) FROM pg_control_system())
        THEN t.shift + txid_snapshot_xmin(txid_current_snapshot()) ELSE 9223372036854775807 END
    FROM holdfast_log l WHERE l.major = {} AND l.minor = {}
), (t.truncated_major, t.truncated_minor) >= ({}, {})) AS known FROM holdfast_log_state t;

-- name: move
INSERT INTO holdfast_log_cursor AS c (consumer, part, parts, major, minor) VALUES ({}, {}, {}, {}, {})
ON CONFLICT (consumer, parts, part) DO UPDATE SET major = excluded.major, minor = excluded.minor
WHERE (c.major, c.minor) < (excluded.major, excluded.minor);
