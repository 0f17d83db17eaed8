/* A node that lost its memory, and how it comes back (-DFORGET: any node, at any moment, any number of times).
 *
 * A node that restarts empty has lost its marks: if it voted on, a smaller token could win after a larger one (variant
 * `forgetful`). It can tell, because the record that says "I remember" is gone with the rest. THE RULE OF RE-SEEDING:
 *  S1  Until it is seeded it answers no take and no extension, and nobody reads its marks. Nothing that it finds on its own
 *      disk counts, or stays: memory rolled back by a restart or a failover is memory lost.
 *  S2  WAIT: it stays out for at least the longest TTL that any client may use (plus drift), counted from when somebody
 *      first sees it empty. Whoever counts on one of its forgotten yeses has then ended, given up, or extended without it.
 *  S3  THEN READ, not before: the marks of a majority (of all N) of OTHER nodes that themselves remember, one by one,
 *      while takes go on. The new mark is the largest of them. No hold is needed: S2 has outlived those that were lost. But
 *      if all whom it read hold the name, and those with the largest mark hold it for one and the same round with that very
 *      ballot, the node may remember this round as one that ran out here, so that its holder can come back (rule 5).
 *  S4  The seed is written only if the node has not restarted again since S2 began (compare a boot id in the same script).
 * Reading before waiting is unsound (`reseed-early`): a take whose yes was forgotten may still be on its way to others.
 * Reading too few (`reseed-one`), or one that does not remember (`reseed-blind`), misses the grant. Two empty nodes of
 * three cannot seed each other: no majority is left that remembers, and a person must decide. The model stops voting.
 *
 * S2 trusts the rate of clocks, as exclusion always does: that of the client that must refuse an outlived grant, and that
 * of whoever waits. If those lie, S1 to S4 let a token go back (`reseed-lying-clock`). -DVOUCH removes that trust:
 *  V1  Each node keeps an incarnation number for every node, as far as it knows; a yes carries that small vector.
 *  V2  Before reading, the re-seeder picks 1 + the highest number that a majority of others know for the empty node,
 *      stores it there (first writer wins), and raises it at each node it reads, in the same step as the read.
 *  V3  The seeded node starts with that number for itself, and with the largest it read for every other.
 *  V4  A client counts yeses together only if none of them knows a newer incarnation of another's node.
 * A forgotten yes then meets, in any majority, a node that either voted before it was read (so the seed covers that ballot)
 * or after it was raised (so its yes exposes the old one). Tokens are right whatever the clocks do; X and O still need S2.
 */
#ifndef FORGET
#define remembers(n)         true
#define stop_waiting_for(s)  skip
#define one_less_wait(s)     skip
#define check_witness(s)     skip
#else
bit  lost[N];                   /* restarted without memory, not yet seeded */
bit  seen[N * N];               /* whose marks the re-seeder of this node has read */
byte best[N];                   /* the largest of them */
byte heir[N];                   /* slot + 1 of the round that may come back; 0 = nothing read yet, or NOBODY, or DOUBT */
byte awaits[N * SLOTS];         /* S2: how many more extensions until that round no longer counts on what was lost here */
#define remembers(n)   (!lost[n])
#define has_seen(m, n) seen[(n) * N + (m)]
#define reads(n)       SUM(has_seen, n)
#define is_lost(n, x)  lost[n]
#ifdef SPARE                    /* at most a minority is without memory at a time */
#define can_spare(n)   (lost[n] || SUM(is_lost, 0) < N - MAJORITY)
#else
#define can_spare(n)   true
#endif
#define wait(n, s)     awaits[(n) * SLOTS + (s)]
#if SLOTS == 2
#define waited(n)      (wait(n, 0) + wait(n, 1) == 0)
#else
#define waited(n)      (wait(n, 0) + wait(n, 1) + wait(n, 2) == 0)
#endif

#if defined(NO_WAIT) || !defined(TIMELY)          /* without honest clocks, waiting proves nothing */
#define may_read(n) true
#define may_seed(n) true
#elif defined(READ_EARLY) || defined(VOUCH)       /* with V1 to V4 it is enough to wait before the seed is written */
#define may_read(n) true
#define may_seed(n) waited(n)
#else
#define may_read(n) waited(n)
#define may_seed(n) true
#endif
#ifdef NO_WAIT
#define may_found(n) true
#else
#define may_found(n) waited(n)
#endif
#ifdef READ_ONE
#define ENOUGH (MAJORITY - 1)
#else
#define ENOUGH MAJORITY
#endif
#ifdef READ_BLIND
#define readable(m) true
#else
#define readable(m) remembers(m)
#endif

inline stop_waiting_for(s) { EACH(i, N) wait(i, s) = 0; DONE(i) }
inline one_less_wait(s) { EACH(i, N) WHEN(wait(i, s) > 0) wait(i, s) = wait(i, s) - 1 END; DONE(i) }

#ifdef WITNESS                  /* can a lease be extended by the yes of a node that forgot everything and came back? */
bit  back[N];                   /* (with -DPLAIN, as nodes are not sorted there) */
#define back_holds(n, s)  (back[n] && holds(n, s))
#define check_witness(s)  BREAKS(W, SUM(back_holds, s) > 0 && SUM(holds, s) == MAJORITY)
#define came_back(n)      back[n] = 1
#else
#define check_witness(s)  skip
#define came_back(n)      skip
#endif

inline forget(n) {
  printf("node %d restarts, empty\n", n);
  hold[n] = 0; out[n] = 0; mark[n] = 0; fresh[n] = 0; best[n] = 0; heir[n] = 0;
  EACH(i, N) seen[n * N + i] = 0; DONE(i);
#ifndef AMNESIA
  lost[n] = 1;
  vouch_forget(n);
#ifdef TIMELY
  EACH(i, SLOTS)                /* an extension that is on its way was sent before the restart, so it takes one more */
    wait(n, i) = (active(i) -> (state[i] == EXTENDING -> 2 : 1) : 0);
  DONE(i);
#endif
#endif
  TIDY
}
inline read_mark(n, m) {
  printf("node %d, to be seeded, is shown mark %d by node %d\n", n, mark[m], m);
  seen[n * N + m] = 1;
  WHEN(!held(m)) heir[n] = NOBODY END;
  if
  :: heir[n] != NOBODY && (heir[n] == 0 || mark[m] > best[n]) ->
     heir[n] = (ballot[hold[m] - 1] == mark[m] -> hold[m] : DOUBT)
  :: heir[n] != NOBODY && heir[n] != 0 && mark[m] == best[n] && hold[m] != heir[n] ->
     heir[n] = DOUBT
  :: else
  fi;
  WHEN(mark[m] > best[n]) best[n] = mark[m] END;
  vouch_read(n, m);
  TIDY
}
inline seed(n) {
  printf("node %d is seeded: mark %d\n", n, best[n]);
  lost[n] = 0; mark[n] = best[n]; best[n] = 0;
  WHEN(heir[n] > 0 && heir[n] < NOBODY) hold[n] = heir[n]; out[n] = 1 END;
  heir[n] = 0;
  EACH(i, N) seen[n * N + i] = 0; DONE(i);
  EACH(i, SLOTS) wait(n, i) = 0; DONE(i);
  vouch_seed(n);
  came_back(n);
  TIDY
}
/* where no node remembers there is nothing to read, and nothing to go by but the clocks: all begin anew, together */
inline found() {
  printf("all nodes are empty: they are founded anew\n");
  EACH(i, N) lost[i] = 0; best[i] = 0; heir[i] = 0; DONE(i);
  EACH(i, N * N) seen[i] = 0; DONE(i);
  EACH(i, N * SLOTS) awaits[i] = 0; DONE(i);
  TIDY
}
#endif
