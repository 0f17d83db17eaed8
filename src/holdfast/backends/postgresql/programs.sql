-- The statements that are sent, by name: one per verb, each a transaction of its own. What they do is in schema/.

-- name: take
SELECT holdfast_take($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15);

-- name: enter
SELECT holdfast_enter($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, false);

-- name: renew
SELECT holdfast_renew($1, $2, $3);

-- name: release
SELECT holdfast_release($1, $2, $3, $4, $5);

-- name: look_all
SELECT holdfast_look_all($1, $2, $3);

-- name: leave_all
SELECT holdfast_leave_all($1, $2, $3);

-- name: evict
SELECT holdfast_evict($1, $2);

-- name: recover
SELECT holdfast_recover($1, $2, $3);

-- name: allow
SELECT holdfast_allow($1, $2, $3, $4, $5);

-- name: swap_record
SELECT * FROM holdfast_swap_record($1, $2, $3, $4, $5, $6);

-- name: delete_record
SELECT * FROM holdfast_swap_record($1, $2, NULL, '', 0, 0);

-- name: touch_records
SELECT holdfast_touch_records($1, $2, $3);

-- name: read_record
SELECT r.name, r.version, encode(r.data, 'hex'), r.owner, greatest(0, r.alive_until - m.now)
FROM (SELECT holdfast_now() AS now OFFSET 0) m JOIN holdfast_record r ON r.name = $1 AND r.kept_until > m.now;

-- name: list_records
-- From $1 on, before $2 and behind $3.
SELECT r.name, r.version, encode(r.data, 'hex'), r.owner, greatest(0, r.alive_until - m.now)
FROM (SELECT holdfast_now() AS now OFFSET 0) m
JOIN holdfast_record r ON r.name >= $1 AND r.name < $2 AND r.name > $3 AND r.kept_until > m.now
ORDER BY r.name LIMIT $4::integer;

-- name: tidy
SELECT holdfast_tidy($1);

-- name: session_try
SELECT holdfast_session_try($1, $2, $3, $4, $5);

-- name: session_again
SELECT holdfast_session_again($1, $2, $3, $4, $5);

-- name: session_wait
SELECT holdfast_session_wait($1, $2, $3, $4);

-- name: session_queue
SELECT holdfast_session_queue($1, $2, $3);

-- name: session_leave
-- No longer seen waiting.
DELETE FROM holdfast_session_waiter WHERE owner = $1;

-- name: session_unlock
-- Whether this session held it.
SELECT pg_advisory_unlock($1);

-- name: session_give_up
-- Out of the server's line, said on another connection.
SELECT pg_cancel_backend($1);

-- name: session_alive
SELECT 't';

-- name: session_bounds
-- So that the server, too, notices a dead peer: in half a minute, not in two hours.
-- Keep-alives are not sent while something is under way that the peer has not taken (a grant to a waiter that vanished):
-- that is what tcp_user_timeout is for. A statement that waits does not look at its connection by itself.
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 25000; SET synchronous_commit = off;
-- A session that holds says nothing for long, and one that waits does so for as long as it takes, whatever the server
-- was told to bound; not every version has all of these.
SELECT set_config(name, '0', false) FROM pg_settings
    WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout');
DO $$
BEGIN
    PERFORM set_config('client_connection_check_interval', '5000', false);
EXCEPTION WHEN undefined_object OR invalid_parameter_value THEN
    NULL;  /* PostgreSQL 12 or 13, or a system that cannot tell */
END $$;

-- name: survey
-- Everybody who stands in a line of the names from $1 on and before $2; with $3, only where there is more than one
-- place. And what tells whether a name is unrecovered: its note, and holds whose time is over (the state is `expired`)
-- and that nobody has noted yet. One snapshot, no lock.
SELECT c.name, s.capacity, c.owner, c.token, c.weight, c.host, c.pid, c.since, c.expires, c.actor, c.mode,
       c.expires > m.now AND NOT c.evicted, m.now,
       CASE WHEN c.owner IS NULL THEN NULL
            WHEN m.now < c.expires + CASE WHEN c.token > 0 THEN c.delay ELSE 0 END THEN 'stands'
            WHEN holdfast_expired(c.token, c.evicted, c.owner) THEN 'expired' END,
       c.robust, CASE WHEN s.unrecovered THEN s.note END
FROM (SELECT holdfast_now() AS now OFFSET 0) m
JOIN holdfast_claim c ON c.name >= $1 AND c.name < $2
JOIN holdfast_claim s ON s.name = c.name AND s.place = 0 AND (s.crowded OR NOT $3::boolean)
WHERE c.owner IS NOT NULL AND (m.now < c.expires + CASE WHEN c.token > 0 THEN c.delay ELSE 0 END
                               OR holdfast_expired(c.token, c.evicted, c.owner))
   OR c.place = 0 AND c.unrecovered
ORDER BY c.name, c.place;

-- name: session_survey
-- Who holds and who waits for session locks of the names from $1 on and before $2 (with $3, only where somebody waits),
-- in the first columns of `survey`.
SELECT c.name, 1, c.owner, c.token, 1, c.who[3], c.who[4], c.since, m.now + c.who[5]::bigint, c.who[1], c.who[2], true,
       m.now
FROM (SELECT holdfast_now() AS now OFFSET 0) m, (
    SELECT s.name, s.owner, s.mark AS token, s.since, string_to_array(s.who, E'\n') AS who
    FROM holdfast_session s
    JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.pid = s.backend AND l.objsubid = 1
                   AND (l.classid::bigint << 32 | l.objid::bigint) = s.key
    WHERE s.name >= $1 AND s.name < $2
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    UNION ALL
    SELECT w.name, w.owner, 0, w.since, string_to_array(w.who, E'\n')
    FROM holdfast_session_waiter w
    WHERE w.name >= $1 AND w.name < $2 AND holdfast_session_lives(w.backend, w.since)
) c
WHERE NOT $3::boolean OR c.name IN (SELECT w.name FROM holdfast_session_waiter w)
ORDER BY c.name, c.token = 0, c.since;

-- name: facts
-- What the server is, in the order of the fields of `greeting.Facts`. Poolers pass it on.
SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only'),
       current_setting('server_version_num'), current_setting('server_encoding'),
       current_setting('transaction_isolation'), current_setting('synchronous_commit'), current_setting('fsync'),
       current_setting('synchronous_standby_names'),
       (SELECT count(*) FROM pg_stat_replication WHERE application_name NOT LIKE 'pg_basebackup%'),
       to_regprocedure('holdfast_tidy(integer)') IS NOT NULL, current_setting('search_path'),
       (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = to_regclass('holdfast_claim')),
       (SELECT string_agg(n.nspname, ', ' ORDER BY n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relname = 'holdfast_claim' AND c.relkind = 'r' AND c.relpersistence <> 't');

-- name: meta
SELECT (SELECT value FROM holdfast_meta WHERE key = 'version'), (SELECT value FROM holdfast_meta WHERE key = 'cluster'),
       (SELECT value FROM holdfast_meta WHERE key = 'revision'),
       (SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c WHERE c.oid = to_regclass('holdfast_meta')),
       (SELECT bool_and(has_table_privilege(to_regclass('holdfast_record'), p.needed))
        FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p(needed));

-- name: creating
-- Before the DDL, in its transaction: one creator at a time. Where the tables of an older version are, there are those of
-- the newer one; and where what a name means depends on the role ("$user"), there is one lock table in the database.
SELECT pg_advisory_xact_lock(7161100441930145106);
SELECT set_config('search_path', quote_ident(n.nspname), true)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('holdfast_claim');
DO $$
DECLARE
    elsewhere text;
BEGIN
    SELECT string_agg(n.nspname, ', ') INTO elsewhere FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relname = 'holdfast_claim' AND c.relkind = 'r' AND c.relpersistence <> 't'
          AND n.nspname <> current_schema() AND position('$user' IN current_setting('search_path')) > 0;
    IF elsewhere IS NOT NULL THEN
        RAISE EXCEPTION '%', elsewhere USING ERRCODE = 'HF001';
    END IF;
END $$;
