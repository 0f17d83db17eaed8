-- The statements of the log on MariaDB, by name. A value stands at {}.

-- Makes the stream's row, or locks it; does not change it. (FOR UPDATE of a missing row would lock the gap, and two that
-- append to new streams in one gap would end in a deadlock.)
-- name: lock_new
INSERT INTO holdfast_log_stream (stream, version)
SELECT {}, 0 FROM DUAL WHERE (@@autocommit = 0 OR @@in_transaction = 1)
ON DUPLICATE KEY UPDATE holdfast_log_stream.version = holdfast_log_stream.version;

-- name: lock_old
SELECT version, (@@autocommit = 0 OR @@in_transaction = 1) AS open
FROM holdfast_log_stream WHERE stream = {} FOR UPDATE;

-- No row: the version is another one, or this is autocommit.
-- name: count
UPDATE holdfast_log_stream SET version = version + {} WHERE stream = {} AND version = {}
AND (@@autocommit = 0 OR @@in_transaction = 1);

-- Locks the counter of positions until this transaction ends. (In one UPDATE with the one above it takes ten times as
-- long as the two.)
-- name: advance
UPDATE holdfast_log_state SET position = position + {} WHERE name = 'last';

-- The counter is this transaction's own by now, so that a plain SELECT of it shows it as it is.
-- name: insert
INSERT INTO holdfast_log (position, stream, version, slot, id, type, data) VALUES {rows};

-- name: row
((SELECT position FROM holdfast_log_state WHERE name = 'last') - {}, {}, {}, {}, {}, {}, {});

-- Current, not as of the snapshot of this transaction.
-- name: find
SELECT id, version, type, data FROM holdfast_log WHERE stream = {} AND id IN ({list})
ORDER BY version LOCK IN SHARE MODE;

-- name: read
SELECT s.version AS last, e.position AS major, 0 AS minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_stream s LEFT JOIN (
    SELECT * FROM holdfast_log WHERE stream = {} AND version > {} ORDER BY version LIMIT {}
) e ON true WHERE s.stream = {} ORDER BY e.version;

-- With innodb_snapshot_isolation (the default since 11.6) the append itself is refused there, and nothing is hidden; to
-- look for it would end the transaction where something was truncated since. Older servers do not know the name.
-- name: snapshot_isolation
SELECT variable_value AS value FROM information_schema.session_variables
WHERE variable_name = 'INNODB_SNAPSHOT_ISOLATION' AND variable_value = 'ON';

-- A transaction sees what it has appended itself, but under REPEATABLE READ not what others have appended between its
-- snapshot and its own append. The event is looked for as it is now; whoever sees a later version has locked the stream.
-- name: unseen_version
SELECT version FROM holdfast_log WHERE stream = {} AND version = {} LOCK IN SHARE MODE;

-- name: read_now
SELECT position AS major, 0 AS minor, stream, version, id, type, data FROM holdfast_log
WHERE stream = {} AND version > {} AND version <= {} ORDER BY version LIMIT {} LOCK IN SHARE MODE;

-- The first event before the last position that is seen which is not seen itself, for the same reason. (The inner
-- SELECT is a plain one, of the snapshot. Nobody is waited for: all events before one that is seen are committed.)
-- name: unseen_position
SELECT position FROM holdfast_log l WHERE position > {} AND position < {}
AND NOT EXISTS (SELECT 1 FROM holdfast_log AS seen WHERE seen.position = l.position)
ORDER BY position LIMIT 1 LOCK IN SHARE MODE;

-- name: tail
SELECT t.position AS truncated_major, 0 AS truncated_minor, @@tx_isolation = 'READ-UNCOMMITTED' AS dirty,
    e.position AS major, 0 AS minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_state t LEFT JOIN (
    SELECT * FROM holdfast_log WHERE position > {} ORDER BY position LIMIT {}
) e ON true WHERE t.name = 'truncated' ORDER BY e.position;

-- name: snapshot
SELECT version, state FROM holdfast_log_snapshot WHERE stream = {} AND name = {};

-- Not of what others may still roll back: the snapshot would outlive it.
-- name: save
INSERT INTO holdfast_log_snapshot (stream, name, version, state)
SELECT {}, {}, {}, {} FROM DUAL WHERE @@tx_isolation <> 'READ-UNCOMMITTED'
ON DUPLICATE KEY UPDATE
    state = IF(VALUES(version) > holdfast_log_snapshot.version, VALUES(state), holdfast_log_snapshot.state),
    version = GREATEST(holdfast_log_snapshot.version, VALUES(version));

-- The oldest first, so that what is left of a stream has no hole.
-- name: oldest_of_stream
SELECT position FROM holdfast_log WHERE stream = {} AND version < {} ORDER BY version LIMIT {} FOR UPDATE;

-- name: oldest_of_log
SELECT position FROM holdfast_log WHERE position < {} ORDER BY position LIMIT {} FOR UPDATE;

-- name: mark_truncated
UPDATE holdfast_log_state SET position = GREATEST(position, {}) WHERE name = 'truncated';

-- name: remove
DELETE FROM holdfast_log WHERE position IN ({list});

-- The last of the next events that `tail` would give.
-- name: window
SELECT position AS major, 0 AS minor, COUNT(*) OVER () AS count FROM (
    SELECT position FROM holdfast_log WHERE position > {} ORDER BY position LIMIT {}
) w ORDER BY position DESC LIMIT 1;

-- Of one partition, up to the end of a window.
-- name: tail_part
SELECT t.position AS truncated_major, 0 AS truncated_minor, @@tx_isolation = 'READ-UNCOMMITTED' AS dirty,
    e.position AS major, 0 AS minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_state t LEFT JOIN (
    SELECT * FROM holdfast_log WHERE position > {} AND position <= {} AND MOD(MOD(slot, {}) + {}, {}) = {}
    ORDER BY position LIMIT {}
) e ON true WHERE t.name = 'truncated' ORDER BY e.position;

-- name: cursor
SELECT parts, major, minor FROM holdfast_log_cursor WHERE consumer = {} AND (parts <> {} OR part = {}) ORDER BY parts;

-- Whether an event of the partition is at this position, or may have been there before it was removed.
-- name: known
SELECT COALESCE(
    (SELECT MOD(MOD(slot, {}) + {}, {}) = {} FROM holdfast_log WHERE position = {}), t.position >= {}
) AS known FROM holdfast_log_state t WHERE t.name = 'truncated';

-- name: move
INSERT INTO holdfast_log_cursor (consumer, part, parts, major, minor) VALUES ({}, {}, {}, {}, {})
ON DUPLICATE KEY UPDATE major = GREATEST(major, VALUES(major));
