-- Raise the mark to the token, unless it is there or beyond. Whoever then finds mark = token has claimed.
-- It is one statement, and it writes: in a transaction that was begun DEFERRED it takes SQLite's write lock together
-- with the snapshot, so that everything read after it is covered. A SELECT before it would open the gap.
INSERT INTO {table} (resource, mark) VALUES (:resource, :token)
ON CONFLICT (resource) DO UPDATE SET mark = excluded.mark WHERE excluded.mark > mark
