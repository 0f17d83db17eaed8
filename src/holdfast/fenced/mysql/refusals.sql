-- The last refusals of each fenced resource; `number` counts them, so the highest one is how many there were.
-- Aria has no rollback, which is what is wanted: a refusal stays when the user's transaction is rolled back. (On MySQL,
-- which has no Aria, write ENGINE=MyISAM.)
-- Created by hand, as the fence's table is. Other users need: GRANT SELECT, INSERT, DELETE ON holdfast_refusal.
CREATE TABLE IF NOT EXISTS holdfast_refusal (
    resource   varbinary(512) NOT NULL,
    number     bigint NOT NULL,
    refused_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    token      bigint NOT NULL,
    mark       bigint,
    owner      varchar(255) NOT NULL,
    PRIMARY KEY (resource, number)
) ENGINE=Aria;
