-- The last refusals of each fenced resource; `number` counts them, so the highest one is how many there were.
-- Made at the first refusal, on a connection of its own, where this role may. Other roles need:
-- GRANT SELECT, INSERT, DELETE ON holdfast_refusal.
CREATE TABLE IF NOT EXISTS holdfast_refusal (
    resource   text COLLATE "C" NOT NULL,
    number     bigint NOT NULL,
    refused_at timestamptz NOT NULL,
    token      bigint NOT NULL,
    mark       bigint,
    owner      text NOT NULL,
    PRIMARY KEY (resource, number)
);
