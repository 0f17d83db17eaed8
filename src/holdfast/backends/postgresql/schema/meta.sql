-- The last step: where a version is told, everything before it is there.

-- cluster: the identity of this database, for sequencers. version: holdfast works with this one only. revision: what is
-- newer does better, and works with what is older.
CREATE TABLE IF NOT EXISTS holdfast_meta (
    key   text PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO holdfast_meta (key, value) VALUES
    ('cluster', substr(md5(random()::text || clock_timestamp()::text), 1, 12))
ON CONFLICT DO NOTHING;

INSERT INTO holdfast_meta (key, value) VALUES ('version', '3'), ('revision', '6')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
