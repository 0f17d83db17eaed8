-- The mark of each fenced resource: the highest token that has claimed it. A mark only rises; a row is never deleted,
-- because a stale holder may come back at any time.
CREATE TABLE IF NOT EXISTS {table} (
    resource TEXT    NOT NULL PRIMARY KEY,
    mark     INTEGER NOT NULL CHECK (mark > 0)
) WITHOUT ROWID
