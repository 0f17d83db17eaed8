-- The effects that were applied, in order. Nothing in it keeps an effect from being applied twice: the fence has to.
CREATE TABLE IF NOT EXISTS effect (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key    TEXT    NOT NULL,
    token  INTEGER NOT NULL,
    worker TEXT    NOT NULL
);
CREATE INDEX IF NOT EXISTS effect_key ON effect (key);

-- The keys at which workers have stopped: others come back to them while they sleep.
CREATE TABLE IF NOT EXISTS struck (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key    TEXT NOT NULL
);
