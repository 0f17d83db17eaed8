-- The mark of each fenced resource: the highest token that has claimed it. A mark only rises; a row is never deleted,
-- because a stale holder may come back at any time. Resources differ when their bytes do.
-- `claims` counts them, so that a transaction which reads an older state than the last claim left is found out.
-- Created by hand: DDL ends a transaction here, so the fence cannot make it in yours.
-- Other users need: GRANT SELECT, INSERT, UPDATE ON holdfast_fence.
CREATE TABLE IF NOT EXISTS holdfast_fence (
    resource varbinary(512) PRIMARY KEY,
    mark     bigint NOT NULL CHECK (mark > 0),
    claims   bigint NOT NULL DEFAULT 0
) ENGINE=InnoDB;
