/* Why every run, of any length, fits into finitely many states.
 *
 *  - Nodes only compare ballots, so a ballot is kept as its RANK among the numbers that still occur (marks, ballots of
 *    rounds that matter, the largest token granted). A new ballot goes into any gap, or equals any of them: that is every
 *    choice any clock could make. A number that occurs nowhere any more is squeezed out.
 *  - A hold that ran out, and whose round is over or has another's mark above it, is as good as none.
 *  - A round that is over, holds nowhere, and is outrun by every mark can never change anything again: its slot is reused.
 *  - Nodes are alike and rounds are alike, so both are kept sorted: a state and its mirror images are one state.
 *
 * This is bookkeeping and no part of the protocol, hence in C: tidy() runs at the end of every step. In a replay it prints
 * each renaming with a '#', so that check.py can give rounds, nodes and ballots the same names all along the trail.
 */
byte ranks;                     /* how many different numbers occur */
#define NUMBERS (SLOTS + N + 1) /* how many could at most */
#define CHOICES (2 * NUMBERS)

c_decl {
  void insert_above(int);
  void tidy(void);
  extern int readtrail;         /* the checker's own: is this a replay? */
#ifdef VOUCH
  void swap_vouched(int, int);
  void squeeze_incarnations(void);
#endif
}

c_code {
#define LOOP(v, limit) for (int v = 0; v < (limit); v++)
#define SWAP(a, b) do { int swap_ = (a); (a) = (b); (b) = swap_; } while (0)
#define RENAME(v, a, b) (v) = (v) == (a) ? (b) : (v) == (b) ? (a) : (v)
#define TELL if (readtrail) printf

#ifdef FORGET
  static int remembers_(int n) { return !now.lost[n]; }
  static int best_(int n) { return now.best[n]; }
  static int reads_(int n) { int r = 0; LOOP(m, N) r += now.seen[n * N + m]; return r; }
#else
  static int remembers_(int n) { return 1; }
  static int best_(int n) { return 0; }
  static int reads_(int n) { return 0; }
#endif

  /* add d to every rank above k */
  static void shift(int k, int d) {
    LOOP(n, N) if (now.mark[n] > k) now.mark[n] += d;
#ifdef FORGET
    LOOP(n, N) if (now.best[n] > k) now.best[n] += d;
#endif
    LOOP(s, SLOTS) if (now.ballot[s] > k) now.ballot[s] += d;
    if (now.top > k) now.top += d;
    now.ranks += d;
  }
  void insert_above(int k) { shift(k, 1); TELL("# insert %d\n", k); }

  static void squeeze_ranks(void) {
    for (int k = now.ranks; k > 0; k--) {
      int used = now.top == k;
      LOOP(n, N) used |= now.mark[n] == k || best_(n) == k;
      LOOP(s, SLOTS) used |= now.ballot[s] == k;
      if (!used) { shift(k, -1); TELL("# squeeze %d\n", k); }
    }
  }

  static int active_(int s) { return now.state[s] >= ASKING && now.state[s] <= EXTENDING; }
  static void drop_dead_holds(void) {
    LOOP(n, N) {
      int s = now.hold[n] - 1;
      if (s >= 0 && now.out[n] && (!active_(s) || now.mark[n] != now.ballot[s])) now.hold[n] = now.out[n] = 0;
#ifdef FORGET
      if (now.heir[n] > 0 && now.heir[n] < NOBODY && !active_(now.heir[n] - 1)) now.heir[n] = DOUBT;
#endif
    }
  }

  /* can no node say yes to this round any more, now or after a re-seeding? */
  static int outrun(int s) {
    LOOP(n, N) {
      if (now.hold[n] == s + 1) return 0;
      if (remembers_(n) ? now.mark[n] < now.ballot[s] : reads_(n) && best_(n) < now.ballot[s]) return 0;
    }
    return 1;
  }
  static void free_slots(void) {
    LOOP(s, SLOTS) if (now.state[s] >= OVER && outrun(s)) {
      now.state[s] = now.ballot[s] = now.owner[s] = now.won[s] = 0;
      LOOP(n, N) now.yes[s * N + n] = 0;
    }
  }

  static void swap_slots(int a, int b) {
    SWAP(now.state[a], now.state[b]); SWAP(now.ballot[a], now.ballot[b]); SWAP(now.owner[a], now.owner[b]);
    SWAP(now.won[a], now.won[b]); SWAP(now.doomed[a], now.doomed[b]);
    LOOP(n, N) {
      SWAP(now.yes[a * N + n], now.yes[b * N + n]);
      RENAME(now.hold[n], a + 1, b + 1);
#ifdef FORGET
      RENAME(now.heir[n], a + 1, b + 1);
      SWAP(now.awaits[n * SLOTS + a], now.awaits[n * SLOTS + b]);
#endif
#ifdef VOUCH
      LOOP(m, N) SWAP(now.told[(a * N + n) * N + m], now.told[(b * N + n) * N + m]);
#endif
    }
    TELL("# slots %d %d\n", a, b);
  }
  static void swap_nodes(int a, int b) {
    SWAP(now.hold[a], now.hold[b]); SWAP(now.out[a], now.out[b]); SWAP(now.mark[a], now.mark[b]); SWAP(now.fresh[a], now.fresh[b]);
    LOOP(s, SLOTS) SWAP(now.yes[s * N + a], now.yes[s * N + b]);
#ifdef FORGET
    SWAP(now.lost[a], now.lost[b]); SWAP(now.best[a], now.best[b]); SWAP(now.heir[a], now.heir[b]);
    LOOP(m, N) SWAP(now.seen[a * N + m], now.seen[b * N + m]);
    LOOP(m, N) SWAP(now.seen[m * N + a], now.seen[m * N + b]);
    LOOP(s, SLOTS) SWAP(now.awaits[a * SLOTS + s], now.awaits[b * SLOTS + s]);
#endif
#ifdef VOUCH
    swap_vouched(a, b);
#endif
    TELL("# nodes %d %d\n", a, b);
  }
  static int slot_key(int s) { return now.ballot[s] * 8 + now.state[s]; }
  static long long node_key(int n) {
    long long key = ((now.mark[n] * 8 + now.hold[n]) * 2 + now.out[n]) * 4 + now.fresh[n];
    LOOP(s, SLOTS) key = key * 2 + now.yes[s * N + n];
#ifdef FORGET
    key = (((key * 2 + now.lost[n]) * 16 + best_(n)) * 8 + now.heir[n]) * 8 + reads_(n);
    LOOP(m, N) key = key * 2 + (now.seen[m * N + n]);
    LOOP(s, SLOTS) key = key * 3 + now.awaits[n * SLOTS + s];
#endif
    return key;
  }

  /* an owner is known by its first slot */
  static void rename_owners(void) {
    int first[SLOTS];
    LOOP(s, SLOTS) for (first[s] = 0; !now.state[first[s]] || now.owner[first[s]] != now.owner[s]; first[s]++)
      if (first[s] == s) break;
    LOOP(s, SLOTS) now.owner[s] = now.state[s] ? first[s] : 0;
  }
  void tidy(void) {
    drop_dead_holds();
#if !defined(COUNTERS) && !defined(PLAIN)
    free_slots();
    squeeze_ranks();
#ifdef VOUCH
    squeeze_incarnations();
#endif
    LOOP(r, SLOTS) LOOP(s, SLOTS - 1) if (slot_key(s) < slot_key(s + 1)) swap_slots(s, s + 1);
    rename_owners();
    LOOP(r, N) LOOP(n, N - 1) if (node_key(n) < node_key(n + 1)) swap_nodes(n, n + 1);
#endif
  }
}
#define TIDY c_code { tidy(); }
