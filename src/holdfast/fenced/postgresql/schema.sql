-- The mark of each fenced resource: the highest token that has claimed it. A mark only rises; a row is never deleted,
-- because a stale holder may come back at any time.
-- Other roles need: GRANT SELECT, INSERT, UPDATE ON holdfast_fence.
CREATE TABLE IF NOT EXISTS holdfast_fence (
    resource text COLLATE "C" PRIMARY KEY,
    mark     bigint NOT NULL CHECK (mark > 0)
);
