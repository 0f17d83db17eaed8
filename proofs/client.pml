/* The client's side of one round. It counts its yeses when it likes, so replies may be as late as can be. A no tells it
 * only a number to go above, and it may pick any number anyway, so noes are not modelled.
 */
#ifdef COUNTERS
byte after[SLOTS];                          /* ghost: the largest token granted before this round began */
#endif
#ifdef ID_AFTER
byte ids;                                   /* a perfect counter, asked by clients that have a majority */
#endif
#ifdef CHAIN                                /* a client may try again under the same owner */
#define GAVE_UP OPEN
#else
#define GAVE_UP OVER
#endif
#define next(s) (state[s] == FREE && (s == 0 || state[s - 1] != FREE))

/* choice: even = the gap above rank choice / 2; odd = equal to the rank above that */
inline begin(s, choice, its_owner) {
#ifdef COUNTERS
  after[s] = top;
#else
  WHEN(choice % 2 == 0) c_code { insert_above(PBegin->choice / 2); } END;
  ballot[s] = choice / 2 + 1; doomed[s] = (ballot[s] <= top);
#endif
  state[s] = ASKING; owner[s] = its_owner
}
#ifdef MIXED                                /* breaks rule 4: yeses to a given-up ballot are kept for the next */
#define drop_yes(s)    WHEN(state[s] != OPEN) no_yes(s) END
#define keep_yes(s, p) EACH(i, N) yes[s * N + i] = yes[p * N + i]; yes[p * N + i] = 0; DONE(i); won[s] = won[p]; won[p] = 0
#else
#define drop_yes(s)    no_yes(s)
#define keep_yes(s, p) skip
#endif

/* rule 1: the next round of the same acquisition goes above its own last ballot */
#define GO_ON(s, p) \
  :: d_step { next(s) && p < s && state[p] == OPEN && choice >= 2 * ballot[p] && choice <= 2 * ranks -> \
       begin(s, choice, owner[p]); state[p] = OVER; keep_yes(s, p); \
       printf("slot %d goes on as slot %d, same owner, with ballot %d\n", p, s, ballot[s]); TIDY }
/* breaks rule 1: a restarted client uses its old owner id, and a clock that may have gone back */
#define SAME_OWNER(s, p) \
  :: d_step { next(s) && p < s && state[p] >= OVER && choice <= 2 * ranks -> begin(s, choice, owner[p]); \
       printf("slot %d comes back as slot %d, same owner, with ballot %d\n", p, s, ballot[s]); TIDY }
#ifdef COUNTERS
#define FRESH(s) :: d_step { next(s) && choice == 0 -> begin(s, choice, s); printf("slot %d begins\n", s); TIDY }
#else
#define FRESH(s) \
  :: d_step { next(s) && choice <= 2 * ranks -> begin(s, choice, s); printf("slot %d begins with ballot %d\n", s, ballot[s]); TIDY }
#endif
#if defined(OWNER_REUSED)
#define BEGIN(s) FRESH(s) SAME_OWNER(s, 0)
#elif defined(CHAIN)
#define BEGIN(s) FRESH(s) GO_ON(s, 0) GO_ON(s, 1) GO_ON(s, 2)
#else
#define BEGIN(s) FRESH(s)
#endif

proctype Begin(byte choice) {
  do
  BEGIN(0)
  BEGIN(1)
#if SLOTS > 2
  BEGIN(2)
#endif
#if SLOTS > 3
  BEGIN(3)
#endif
  od
}

inline check_grant(s) {
#ifdef COUNTERS
  BREAKS(R, ballot[s] <= after[s]);
#else
  BREAKS(R, doomed[s] == 1);
  BREAKS(U, doomed[s] == 2);
  EACH(i, SLOTS) WHEN(i != s && state[i] == ASKING && ballot[i] == ballot[s]) doomed[i] = 2 END; DONE(i);
#endif
#if defined(TIMELY) || defined(CLAIM_X_O)
  EACH(i, SLOTS) BREAKS(X, i != s && believes(i)); DONE(i);
  BREAKS(O, ballot[s] <= top);
#endif
}
inline finish(s) {
  drop_yes(s); doomed[s] = 0; stop_waiting_for(s);
  EACH(i, N) WHEN(hold[i] == s + 1) fresh[i] = 0 END; DONE(i);
  TIDY
}

proctype Client(byte s) {
  do
  :: d_step { state[s] == ASKING ->         /* a time-out, a no too many, a cancelled task; a release may follow or not */
       state[s] = GAVE_UP; printf("slot %d gives up\n", s); finish(s) }
  :: d_step { state[s] == ASKING && won[s] ->
#ifdef ID_AFTER
       ids++; ballot[s] = ids;
#endif
       printf("slot %d counts a majority: granted, token %d\n", s, ballot[s]);
       check_grant(s);
       state[s] = HOLDING; won[s] = 0; doomed[s] = 0;
       WHEN(ballot[s] > top) top = ballot[s] END;
       check_rightful_holder(); TIDY }
  :: d_step { state[s] == HOLDING ->
       state[s] = EXTENDING; doomed[s] = (ballot[s] < top); printf("slot %d asks for an extension\n", s); TIDY }
  :: d_step { state[s] == EXTENDING && won[s] ->
       printf("slot %d counts a majority: extended, token %d\n", s, ballot[s]);
       BREAKS(E, doomed[s]);
       check_witness(s);
       state[s] = HOLDING; won[s] = 0; doomed[s] = 0;
       EACH(i, N) WHEN(hold[i] == s + 1 && fresh[i] > 0) fresh[i] = fresh[i] - 1 END; DONE(i);
       one_less_wait(s); TIDY }
  :: d_step { believes(s) ->                /* released, or validity over, or told of the loss */
       state[s] = OVER; printf("slot %d ends\n", s); finish(s) }
  od
}
