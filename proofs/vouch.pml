/* How yeses add up: without, and with, the vector of incarnations (rules V1 to V4 of reseed.pml).
 * Those numbers grow with every restart, so with -DVOUCH restarts are limited to RESTARTS; all else stays unlimited.
 */
#ifndef VOUCH
#define voted(n, s)      yes[(s) * N + (n)]
#define may_restart(n)   true
#define has_plan(n)      true
#define vouch_forget(n)  skip
#define vouch_read(n, m) skip
#define vouch_seed(n)    skip
#define no_yes(s)        EACH(i, N) yes[s * N + i] = 0; DONE(i); won[s] = 0

/* once there is a majority, who said what no longer matters */
inline say_yes(n, s) {
  WHEN(!won[s])
    yes[s * N + n] = 1;
    WHEN(SUM(voted, s) >= MAJORITY) no_yes(s); won[s] = 1 END
  END
}
#else
#ifndef RESTARTS
#define RESTARTS 2
#endif
byte knows[N * N];              /* knows[n, m]: the incarnation of m as n knows it; knows[n, n] is its own */
byte told[SLOTS * N * N];       /* the vector that came with the yes of n to s */
bit  planned[N];                /* V2 has picked a number for this restart: */
byte plan[N];
byte stale[N];                  /* the highest picked for earlier restarts: raises to it may still be on their way */
byte restarts;
#define may_restart(n) (restarts < RESTARTS)
#define has_plan(n)    planned[n]
#define newer(v, w)    WHEN(v < (w)) v = w END
#define no_yes(s)      EACH(i, N) yes[s * N + i] = 0; DONE(i); EACH(i, N * N) told[s * N * N + i] = 0; DONE(i); won[s] = 0

c_code {
#define KNOWS(n, m)   now.knows[(n) * N + (m)]
#define TOLD(s, n, m) now.told[((s) * N + (n)) * N + (m)]
  /* V4: is there a majority of yeses, none of which knows a newer incarnation of another's node? */
  int vouched(int s) {
    LOOP(set, 1 << N) {
      int size = 0, fine = 1;
      LOOP(n, N) if (set >> n & 1) {
        size++;
        fine &= now.yes[s * N + n];
        LOOP(m, N) if (set >> m & 1) fine &= TOLD(s, n, m) <= TOLD(s, m, m);
      }
      if (fine && size >= MAJORITY) return 1;
    }
    return 0;
  }
  void swap_vouched(int a, int b) {
    SWAP(now.planned[a], now.planned[b]); SWAP(now.plan[a], now.plan[b]); SWAP(now.stale[a], now.stale[b]);
    LOOP(m, N) SWAP(KNOWS(a, m), KNOWS(b, m));
    LOOP(m, N) SWAP(KNOWS(m, a), KNOWS(m, b));
    LOOP(s, SLOTS) LOOP(m, N) SWAP(TOLD(s, a, m), TOLD(s, b, m));
    LOOP(s, SLOTS) LOOP(m, N) SWAP(TOLD(s, m, a), TOLD(s, m, b));
  }
  /* only differences matter: count each node's incarnations from the oldest number that still occurs */
  void squeeze_incarnations(void) {
    LOOP(m, N) {
      int least = 255, told = 255;
      LOOP(n, N) if (remembers_(n) && KNOWS(n, m) < least) least = KNOWS(n, m);
      if (now.stale[m] <= least) now.stale[m] = 0;
      LOOP(s, SLOTS) LOOP(n, N) if (now.yes[s * N + n] && TOLD(s, n, m) < told) told = TOLD(s, n, m);
      if (told < least) least = told;
      if (least == 0 || least == 255) continue;
      LOOP(n, N) KNOWS(n, m) = KNOWS(n, m) > least ? KNOWS(n, m) - least : 0;
      LOOP(s, SLOTS) LOOP(n, N) TOLD(s, n, m) = TOLD(s, n, m) > least ? TOLD(s, n, m) - least : 0;
      now.plan[m] = now.plan[m] > least ? now.plan[m] - least : 0;
      now.stale[m] = now.stale[m] > least ? now.stale[m] - least : 0;
      TELL("# incarnations %d %d\n", m, least);
    }
  }
}
byte asked;                     /* scratch: the round that vouched() is asked about */
inline say_yes(n, s) {
  WHEN(!won[s])
    yes[s * N + n] = 1;
    EACH(i, N) told[(s * N + n) * N + i] = knows[n * N + i]; DONE(i);
    asked = s; c_code { now.won[now.asked] = vouched(now.asked); }; asked = 0;
    WHEN(won[s]) no_yes(s); won[s] = 1 END
  END
}
inline vouch_forget(n) {
  restarts++; newer(stale[n], plan[n]); plan[n] = 0; planned[n] = 0;
  EACH(i, N) knows[n * N + i] = 0; DONE(i)
}
/* V2; with three nodes the majority of others is both others */
inline vouch_plan(n) {
  planned[n] = 1;
  EACH(i, N) WHEN(i != n) newer(plan[n], knows[i * N + n] + 1) END; DONE(i);
  printf("node %d will come back as incarnation %d\n", n, plan[n]);
  TIDY
}
inline vouch_read(n, m) {
  newer(knows[m * N + n], plan[n]);
#ifndef NO_COPY                 /* breaks V3 */
  EACH(i, N) newer(knows[n * N + i], knows[m * N + i]); DONE(i)
#endif
}
inline vouch_seed(n) { knows[n * N + n] = plan[n]; plan[n] = 0; planned[n] = 0 }
#endif
