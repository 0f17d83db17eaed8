-- The embedded engine's statements, by name. A statement that stands alone is its own transaction; the others run
-- inside one.

-- name: take_free
-- The uncontended take: sit down if the line is empty, with calendar time (?2) as the token, if that is above the
-- mark. Answers how the last hold ended. No row: not so simple.
INSERT INTO claim (name, place, mark, token, owner, weight, capacity, fair, ttl, patience, delay, since, expires,
                   evicted, wake, actor, mode, host, pid, robust)
VALUES (?1, 0, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10 + ?7, 0, '', ?11, ?12, ?13, ?14, ?15)
ON CONFLICT (name, place) DO UPDATE SET
    mark = ?2, token = ?2, owner = ?3, weight = ?4, capacity = ?5, fair = ?6, ttl = ?7,
    patience = ?8, delay = ?9, since = ?10, expires = ?10 + ?7, evicted = 0, wake = '', actor = ?11, mode = ?12,
    host = ?13, pid = ?14, robust = ?15
WHERE owner IS NULL AND mark < ?2 AND NOT EXISTS (SELECT 1 FROM claim WHERE name = ?1 AND place > 0)
RETURNING ended_token, ended_owner, ended_how;

-- name: release_alone
-- The uncontended release: stand up if nobody else is in the line. No row: not so simple.
UPDATE claim SET owner = NULL, token = 0,
    ended_token = iif(ended_robust, ended_token, token), ended_owner = iif(ended_robust, ended_owner, owner),
    ended_how = iif(ended_robust, ended_how, 'released')
WHERE name = ?1 AND place = 0 AND owner = ?2 AND expires > ?3 AND evicted = 0
  AND NOT EXISTS (SELECT 1 FROM claim WHERE name = ?1 AND place > 0);

-- name: look_at_line
-- The contended take of a mutex is this look and `join`, in one transaction: to stand at the end of a line whose head
-- holds on the seat. Answers with the last place, the mark, whether there is anything odd about it (own claim, another
-- capacity), the first place with a live waiter, and when the hold ends. No row: not so simple.
SELECT (SELECT max(place) FROM claim WHERE name = ?1), mark,
       owner = ?3 OR capacity <> 1
       OR EXISTS (SELECT 1 FROM claim INDEXED BY queued WHERE owner = ?3 AND name = ?1 AND place > 0),
       (SELECT place FROM claim WHERE name = ?1 AND place > 0 AND token = 0 AND expires > ?2 ORDER BY place LIMIT 1),
       expires + delay
FROM claim WHERE name = ?1 AND place = 0 AND token > 0 AND expires > ?2 AND evicted = 0;

-- name: join
INSERT INTO claim (name, place, capacity, owner, weight, fair, ttl, patience, delay, since, expires, wake, actor, mode,
                   host, pid, robust)
VALUES (?1, ?2, 1, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?8 + ?6, ?9, ?10, ?11, ?12, ?13, ?14);

-- name: next
-- The contended release of a mutex is this look and `seat`, in one transaction: what `_core.line` does, for a capacity
-- of 1. Answers with the first live waiter behind the one who holds on the seat and lets go, and the mark. While that
-- one holds, nobody else takes up the capacity. And how the last hold has ended then.
SELECT heir.place, heir.owner, heir.wake, seat.mark, heir.expires,
       iif(seat.ended_robust, seat.ended_token, seat.token), iif(seat.ended_robust, seat.ended_owner, seat.owner),
       iif(seat.ended_robust, seat.ended_how, 'released'), seat.ended_robust
FROM claim AS seat JOIN claim AS heir ON heir.name = seat.name
WHERE seat.name = ?1 AND seat.place = 0 AND seat.owner = ?2 AND seat.token > 0 AND seat.expires > ?3 AND seat.evicted = 0
  AND heir.place > 0 AND heir.owner IS NOT NULL AND heir.token = 0 AND heir.expires > ?3
ORDER BY heir.place LIMIT 1;

-- name: seat
-- Seat the heir with its token: whoever sat there is gone with this, and the mark is set.
UPDATE OR REPLACE claim SET place = 0, mark = ?3, token = ?3, since = ?4, ended_token = ?5, ended_owner = ?6,
    ended_how = ?7, ended_robust = ?8 WHERE name = ?1 AND place = ?2;

-- name: go_from_line
-- Let go of a hold that is not on the seat: somebody was evicted from there, or the line was once swept. Then the heir
-- is looked for by `heir`, and seated, or granted where it stands if the seat is taken.
DELETE FROM claim INDEXED BY queued
WHERE name = ?1 AND place > 0 AND owner = ?2 AND token > 0 AND expires > ?3 AND evicted = 0 RETURNING token;

-- name: note_release
UPDATE claim SET ended_token = ?3, ended_owner = ?2, ended_how = 'released'
WHERE name = ?1 AND place = 0 AND NOT ended_robust;

-- name: go_from_seat
UPDATE claim SET owner = NULL, token = 0,
    ended_token = iif(ended_robust, ended_token, token), ended_owner = iif(ended_robust, ended_owner, owner),
    ended_how = iif(ended_robust, ended_how, 'released')
WHERE name = ?1 AND place = 0 AND owner = ?2 AND token > 0 AND expires > ?3 AND evicted = 0;

-- name: heir
-- The first live waiter, if nothing takes up the capacity; with the mark, and whether the seat is free.
SELECT heir.place, heir.owner, heir.wake, seat.mark, heir.expires, seat.ended_token, seat.ended_owner, seat.ended_how,
       seat.ended_robust, seat.owner IS NULL
FROM claim AS seat JOIN claim AS heir ON heir.name = seat.name
WHERE seat.name = ?1 AND seat.place = 0
  AND heir.owner IS NOT NULL AND heir.token = 0 AND heir.expires > ?2
  AND NOT (seat.token > 0 AND seat.expires + seat.delay > ?2)
  AND NOT EXISTS (SELECT 1 FROM claim INDEXED BY holding
                  WHERE name = ?1 AND place > 0 AND token > 0 AND expires + delay > ?2)
ORDER BY heir.place LIMIT 1;

-- name: grant
UPDATE claim SET token = ?3, since = ?4 WHERE name = ?1 AND place = ?2;

-- name: renew
-- Extend a live hold on the seat. No row: it is not one.
UPDATE claim SET expires = ?3 + ttl
WHERE name = ?1 AND place = 0 AND owner = ?2 AND token = ?4 AND token > 0 AND expires > ?3 AND evicted = 0;

-- name: renew_in_line
UPDATE claim INDEXED BY queued SET expires = ?3 + ttl
WHERE name = ?1 AND place > 0 AND owner = ?2 AND token = ?4 AND token > 0 AND expires > ?3 AND evicted = 0;

-- name: load
SELECT mark, capacity, ended_token, ended_owner, ended_how, ended_robust, owner, weight, fair, ttl, patience, delay,
       since, expires, token, evicted, wake, actor, mode, host, pid, place, robust
FROM claim WHERE name = ?1 ORDER BY place;

-- name: load_seat
SELECT mark, capacity, ended_token, ended_owner, ended_how, ended_robust, owner, weight, fair, ttl, patience, delay,
       since, expires, token, evicted, wake, actor, mode, host, pid, place, robust
FROM claim WHERE name = ?1 AND place = 0;

-- name: load_holds
SELECT mark, capacity, ended_token, ended_owner, ended_how, ended_robust, owner, weight, fair, ttl, patience, delay,
       since, expires, token, evicted, wake, actor, mode, host, pid, place, robust
FROM claim INDEXED BY holding WHERE name = ?1 AND place > 0 AND token > 0;

-- name: load_own
SELECT mark, capacity, ended_token, ended_owner, ended_how, ended_robust, owner, weight, fair, ttl, patience, delay,
       since, expires, token, evicted, wake, actor, mode, host, pid, place, robust
FROM claim INDEXED BY queued WHERE name = ?1 AND owner = ?2 AND place > 0;

-- name: load_first
-- The first ?2 who wait.
SELECT mark, capacity, ended_token, ended_owner, ended_how, ended_robust, owner, weight, fair, ttl, patience, delay,
       since, expires, token, evicted, wake, actor, mode, host, pid, place, robust
FROM claim WHERE name = ?1 AND place > 0 AND token = 0 AND owner IS NOT NULL ORDER BY place LIMIT ?2;

-- name: last_place
-- And whether some in the line may overtake.
SELECT (SELECT max(place) FROM claim WHERE name = ?1),
       EXISTS (SELECT 1 FROM claim INDEXED BY overtaking WHERE name = ?1 AND place > 0 AND fair = 0);

-- name: enter
INSERT INTO claim (name, place, mark, capacity, owner, weight, fair, ttl, patience, delay, since, expires, token,
                   evicted, wake, actor, mode, host, pid, robust)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)
ON CONFLICT (name, place) DO UPDATE SET
    mark = ?3, capacity = ?4, owner = ?5, weight = ?6, fair = ?7, ttl = ?8, patience = ?9, delay = ?10, since = ?11,
    expires = ?12, token = ?13, evicted = ?14, wake = ?15, actor = ?16, mode = ?17, host = ?18, pid = ?19,
    robust = ?20;

-- name: change
UPDATE claim SET owner = ?3, token = ?4, since = ?5, expires = ?6, evicted = ?7, delay = ?8, wake = ?9
WHERE name = ?1 AND place = ?2;

-- name: stand_up
UPDATE claim SET owner = NULL, token = 0 WHERE name = ?1 AND place = 0;

-- name: leave
DELETE FROM claim WHERE name = ?1 AND place = ?2;

-- name: save_ended
UPDATE claim SET ended_token = ?2, ended_owner = ?3, ended_how = ?4, ended_robust = ?5 WHERE name = ?1 AND place = 0;

-- name: save_mark
UPDATE claim SET mark = ?2 WHERE name = ?1 AND place = 0;

-- name: names
-- All names that begin with ?1: those from it to ?3, which is behind all of them. With ?2 those only for which somebody
-- waits, without it also those that are left unrecovered.
SELECT DISTINCT name FROM claim
WHERE (owner IS NOT NULL AND (token = 0 OR NOT ?2) OR ended_robust AND NOT ?2) AND name >= ?1 AND name < ?3 ORDER BY name;

-- name: load_tat
SELECT tat FROM rate WHERE name = ?1;

-- name: save_tat
INSERT INTO rate (name, tat) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET tat = ?2;

-- name: names_after
SELECT name FROM claim WHERE name > ?1 UNION SELECT name FROM rate WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: tidy_claims
-- Among the names after ?1 up to ?2: those in which nobody stands (at engine time ?4) and whose mark lies before ?3
-- (calendar time) say nothing that the clock does not. A claim that is over has no owner to remove it if that has died.
-- What is to be put right stays.
DELETE FROM claim
WHERE name > ?1 AND name <= ?2
  AND (SELECT mark FROM claim AS seat WHERE seat.name = claim.name AND seat.place = 0) < ?3
  AND NOT EXISTS (SELECT 1 FROM claim AS other WHERE other.name = claim.name AND other.owner IS NOT NULL
                  AND other.expires + other.delay + iif(other.evicted, other.ttl, 0) > ?4)
  AND NOT EXISTS (SELECT 1 FROM claim AS other WHERE other.name = claim.name
                  AND (other.ended_robust OR other.robust AND other.token > 0 AND other.owner IS NOT NULL));

-- name: tidy_rates
-- Limiters among the same names that are full again (engine time ?3).
DELETE FROM rate WHERE name > ?1 AND name <= ?2 AND tat < ?3;

-- name: new_boot_holds
-- The machine has started anew: nobody who held or waited is alive, and no hold has ended cleanly with it.
UPDATE claim AS seat SET ended_token = hold.token, ended_owner = hold.owner, ended_how = 'expired',
    ended_robust = hold.robust OR seat.ended_robust
FROM (SELECT name, owner, robust, max(token) AS token FROM claim
      WHERE token > 0 AND evicted = 0 AND owner NOT LIKE '~%' GROUP BY name) AS hold
WHERE seat.name = hold.name AND seat.place = 0;

-- name: new_boot
DELETE FROM claim WHERE place > 0;

-- name: new_boot_seats
UPDATE claim SET owner = NULL, token = 0 WHERE owner IS NOT NULL;

-- name: new_boot_rates
DELETE FROM rate;

-- name: latest
-- The latest time at which somebody entered a line or was granted: in the future only after another start.
SELECT max(since) FROM claim;

-- name: load_meta
SELECT value FROM meta WHERE key = ?1;

-- name: save_meta
INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2;

-- name: load_record
SELECT version, data, owner, alive_until, kept_until, keep FROM record WHERE key = ?1;

-- name: save_record
INSERT INTO record (key, version, data, owner, alive_until, kept_until, keep)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (key) DO UPDATE SET version = ?2, data = ?3, owner = ?4, alive_until = ?5, kept_until = ?6, keep = ?7;

-- name: record_keys
-- All keys behind ?2 that begin with ?1, with ?3 as in `names`.
SELECT key FROM record WHERE key >= ?1 AND key > ?2 AND key < ?3 ORDER BY key;

-- name: add_record
-- A record where there is none. No row: there is one, or what is left of one.
INSERT INTO record (key, version, data, owner, alive_until, kept_until, keep)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (key) DO NOTHING;

-- name: swap_record
-- A change of the version ?8, if it is still there at ?9.
UPDATE record SET version = ?2, data = ?3, owner = ?4, alive_until = ?5, kept_until = ?6, keep = ?7
WHERE key = ?1 AND version = ?8 AND keep > 0 AND kept_until > ?9;

-- name: any_over
SELECT 1 FROM record WHERE kept_until <= ?1 LIMIT 1;

-- name: forget_records
DELETE FROM record WHERE key IN (SELECT key FROM record WHERE kept_until <= ?1 AND key <> ?3 ORDER BY kept_until LIMIT ?2);

-- name: new_boot_records
-- After another start of the machine nobody stands behind a record.
UPDATE record SET alive_until = 0 WHERE alive_until > 0;
