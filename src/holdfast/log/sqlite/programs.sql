-- The statements of the log on SQLite, by name. A value stands at {}.

-- Takes the write lock of a transaction that was begun DEFERRED, before anything is read; changes nothing.
-- name: write_lock
DELETE FROM holdfast_log_stream WHERE 0;

-- name: lock_new
INSERT INTO holdfast_log_stream (stream, version) VALUES ({}, 0) ON CONFLICT DO NOTHING;

-- name: lock_old
SELECT version, 1 AS open FROM holdfast_log_stream WHERE stream = {};

-- name: count
UPDATE holdfast_log_stream SET version = version + {} WHERE stream = {} AND version = {};

-- name: insert
INSERT INTO holdfast_log (stream, version, slot, id, type, data) VALUES {rows};

-- name: row
({}, {}, {}, {}, {}, {});

-- name: find
SELECT id, version, type, data FROM holdfast_log WHERE stream = {} AND id IN ({list}) ORDER BY version;

-- name: read
SELECT s.version AS last, e.position AS major, 0 AS minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_stream s LEFT JOIN (
    SELECT * FROM holdfast_log WHERE stream = {} AND version > {} ORDER BY version LIMIT {}
) e ON 1 WHERE s.stream = {} ORDER BY e.version;

-- name: tail
SELECT t.position AS truncated_major, 0 AS truncated_minor,
    e.position AS major, 0 AS minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_state t LEFT JOIN (
    SELECT * FROM holdfast_log WHERE position > {} ORDER BY position LIMIT {}
) e ON 1 WHERE t.name = 'truncated' ORDER BY e.position;

-- name: snapshot
SELECT version, state FROM holdfast_log_snapshot WHERE stream = {} AND name = {};

-- name: save
INSERT INTO holdfast_log_snapshot (stream, name, version, state) VALUES ({}, {}, {}, {})
ON CONFLICT (stream, name) DO UPDATE SET version = excluded.version, state = excluded.state
WHERE excluded.version > version;

-- The oldest first, so that what is left of a stream has no hole.
-- name: oldest_of_stream
SELECT position FROM holdfast_log WHERE stream = {} AND version < {} ORDER BY version LIMIT {};

-- name: oldest_of_log
SELECT position FROM holdfast_log WHERE position < {} ORDER BY position LIMIT {};

-- name: mark_truncated
UPDATE holdfast_log_state SET position = max(position, {}) WHERE name = 'truncated';

-- name: remove
DELETE FROM holdfast_log WHERE position IN ({list});

-- The last of the next events that `tail` would give.
-- name: window
SELECT position AS major, 0 AS minor FROM (
    SELECT position FROM holdfast_log WHERE position > {} ORDER BY position LIMIT {}
) w ORDER BY position DESC LIMIT 1;

-- Of one partition, up to the end of a window.
-- name: tail_part
SELECT t.position AS truncated_major, 0 AS truncated_minor,
    e.position AS major, 0 AS minor, e.stream, e.version, e.id, e.type, e.data
FROM holdfast_log_state t LEFT JOIN (
    SELECT * FROM holdfast_log WHERE position > {} AND position <= {} AND ((slot % {}) + {}) % {} = {}
    ORDER BY position LIMIT {}
) e ON 1 WHERE t.name = 'truncated' ORDER BY e.position;

-- name: cursor
SELECT parts, major, minor FROM holdfast_log_cursor WHERE consumer = {} AND (parts <> {} OR part = {}) ORDER BY parts;

-- Whether an event of the partition is at this position, or may have been there before it was removed.
-- name: known
SELECT COALESCE(
    (SELECT ((slot % {}) + {}) % {} = {} FROM holdfast_log WHERE position = {}), t.position >= {}
) AS known FROM holdfast_log_state t WHERE t.name = 'truncated';

-- name: move
INSERT INTO holdfast_log_cursor (consumer, part, parts, major, minor) VALUES ({}, {}, {}, {}, {})
ON CONFLICT (consumer, parts, part) DO UPDATE SET major = excluded.major WHERE major < excluded.major;
