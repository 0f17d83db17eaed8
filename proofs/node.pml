/* The node's side: what each message does on arrival, and expiry. A message may arrive from when it is sent, for ever.
 */
/* rule 2, and two ways to get it wrong */
#if defined(COUNTERS)
#define accepts(n, s) (!held(n) && state[s] == ASKING && !won[s] && !yes[s * N + n])
#elif defined(EQUAL_MARK)
#define accepts(n, s) ((!held(n) || mine(n, s)) && !holds(n, s) && mark[n] <= ballot[s])
#else
#define accepts(n, s) ((!held(n) || mine(n, s)) && mark[n] < ballot[s])
#endif
/* the same take again, the same yes again: by owner and ballot, which is all that a node can see */
#define repeats(n, s) (state[s] == ASKING && !won[s] && !yes[s * N + n] && mine(n, s) && ballot[hold[n] - 1] == ballot[s])

#ifdef TIMELY                               /* nothing vanishes that somebody still counts on */
#define may_expire(n) (held(n) && fresh[n] == 0)
#define freshness(n, value) fresh[n] = value
#else
#define may_expire(n) held(n)
#define freshness(n, value) skip
#endif

/* rule 5; a hold that ran out under another mark is dropped in ranks.pml */
#ifdef EXTEND_BLIND                         /* breaks it */
#define extends(n, s) (!held(n) || holds(n, s))
#else
#define extends(n, s) (hold[n] == s + 1)
#endif

#ifdef RELEASE_ANY                          /* breaks rule 6 */
#define clears(n, s) mine(n, s)
#else
#define clears(n, s) (mine(n, s) && ballot[hold[n] - 1] <= ballot[s])
#endif
#ifdef COUNTERS
#define raises(n, s) false
#else
#define raises(n, s) (mark[n] < ballot[s])
#endif

inline place(n, s) {
  hold[n] = s + 1; out[n] = 0;
  freshness(n, active(s));
#if defined(NAIVE)                          /* token = the largest of the counters that come with the yeses */
  mark[n]++;
  WHEN(mark[n] > ballot[s]) ballot[s] = mark[n] END
#elif !defined(COUNTERS)
  mark[n] = ballot[s]
#endif
}

proctype Wire(byte n; byte s) {
  do
  :: d_step { state[s] != FREE && remembers(n) && accepts(n, s) ->
       place(n, s);
       printf("node %d says yes to slot %d: mark %d\n", n, s, mark[n]);
       WHEN(state[s] == ASKING) say_yes(n, s) END;
       check_rightful_holder(); TIDY }
  :: d_step { state[s] != FREE && remembers(n) && repeats(n, s) ->
       printf("node %d says yes to slot %d: the hold is its own\n", n, s); say_yes(n, s); TIDY }
#ifdef VOUCH                                /* a second yes, after a restart: it may be lost, and the first one counted */
  :: d_step { state[s] == ASKING && yes[s * N + n] && remembers(n) && accepts(n, s) ->
       place(n, s); printf("node %d says yes to slot %d once more, unheard\n", n, s); check_rightful_holder(); TIDY }
#endif
  :: d_step { state[s] == EXTENDING && remembers(n) && extends(n, s) ->
       hold[n] = s + 1; out[n] = 0;
       printf("node %d extends slot %d\n", n, s);
       say_yes(n, s); freshness(n, 2);
       check_rightful_holder(); TIDY }
  :: d_step { state[s] >= OVER && remembers(n) && (clears(n, s) || raises(n, s)) ->
       WHEN(clears(n, s)) hold[n] = 0; fresh[n] = 0 END;
       WHEN(raises(n, s)) mark[n] = ballot[s] END;
       printf("node %d gets the release of slot %d: mark %d\n", n, s, mark[n]); TIDY }
  od
}

#define may_begin(n, x) may_found(n)
#define READ(n, m) \
  :: d_step { lost[n] && has_plan(n) && may_read(n) && readable(m) && reads(n) < ENOUGH && !has_seen(m, n) -> read_mark(n, m) }
#define RAISE_LATE(n, m) \
  :: d_step { remembers(m) && knows[m * N + n] < stale[n] -> knows[m * N + n] = stale[n]; \
       printf("node %d hears late of incarnation %d of node %d\n", m, stale[n], n); TIDY }

proctype Node(byte n) {
  do
  :: d_step { may_expire(n) ->
       printf("node %d: the hold of slot %d expires\n", n, hold[n] - 1); out[n] = 1; fresh[n] = 0;
#ifdef MARK_DIES                            /* breaks rule 3 */
       mark[n] = 0;
#endif
       TIDY }
#ifdef FORGET
  :: d_step { may_restart(n) && can_spare(n) -> forget(n) }
  READ(n, (n + 1) % N)
  READ(n, (n + 2) % N)
#if N > 3
  READ(n, (n + 3) % N)
  READ(n, (n + 4) % N)
#endif
  :: d_step { lost[n] && reads(n) >= ENOUGH && may_seed(n) -> seed(n) }
#endif
#ifdef FOUND
  :: d_step { n == 0 && SUM(is_lost, 0) == N && SUM(may_begin, 0) == N -> found() }
#endif
#ifdef VOUCH
  :: d_step { lost[n] && !has_plan(n) && remembers((n + 1) % N) && remembers((n + 2) % N) -> vouch_plan(n) }
  RAISE_LATE(n, (n + 1) % N)
  RAISE_LATE(n, (n + 2) % N)
#endif
  od
}
