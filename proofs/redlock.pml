/* Redlock with fencing tokens: the ballot protocol of DESIGN section 6, in every possible run.
 *
 * THE RULES (what the implementation must do; each is broken on purpose by a variant of check.py)
 *  1  A round is (owner, ballot). The owner id is fresh for every acquisition; within one acquisition each further
 *     round has a larger ballot. Nothing else is asked of a ballot: clocks may stand still, jump, or agree by chance.
 *  2  A node says yes to a take iff its lock is free or mine AND its mark < ballot; it then stores hold and mark = ballot
 *     in one step. A take that finds its very own (owner, ballot) in the hold gets the same yes again. Else it says no.
 *  3  The mark outlives the hold: expiry and release never lower it.
 *  4  A majority of yes to ONE ballot is the grant; the ballot is the token. Yeses to different ballots never add up.
 *  5  An extension keeps the token. A node says yes iff it holds for this very (owner, ballot), or did until the hold ran
 *     out and its mark is still that ballot (nobody came after), or by rule 2. Never past a mark.
 *  6  A release names (owner, ballot). It clears a hold of that owner up to that ballot, never a later one, and raises the
 *     mark to the ballot, so that a take that arrives after its own release is refused.
 *  7  A node that lost its memory says nothing until it is re-seeded: reseed.pml has that rule.
 *
 * THE PROMISES
 *  With no clock assumption at all (a hold may vanish at any step, even while its holder counts on it):
 *  U  unique           no two grants have the same token.
 *  R  real-time order  if grant A was complete before the winning round of B began, then token(A) < token(B).
 *  F  rightful holder  no round in progress or held has a majority of holds with a token below one already granted.
 *  E  extension        an extension begun after a larger token was granted never succeeds.
 *  With -DTIMELY (a hold does not vanish while its holder's validity, counted from the send, still runs; a client never
 *  accepts a grant whose validity has passed), all of those and also:
 *  X  exclusion        at most one client believes that it holds the lock.
 *  O  grant order      grants complete in the order of their tokens: a lease that ended before another began has the
 *                      smaller token.
 *
 * WHICH ORDER A FENCE NEEDS. Two winners share a node. Its holds are disjoint in time and its mark only rises, so the
 * later hold there has the larger token: tokens are in the order of HOLDS AT SHARED NODES. That is not the order in which
 * clients notice that they won: without clocks, B's hold may expire while the yes to B is still on its way, A may win with
 * a larger ballot and end, and only then does B count its majority (`late-reply` shows it). Such a B was stale before it
 * began; if A claimed at the resource, the fence refuses B, as it should. What a fence needs is F: a client that truly
 * has a majority when it claims has the largest token ever granted, so nobody can have raised the fence above it. The
 * rightful holder is never refused; everybody older is, from its claim on. When validity is honest (TIMELY), believing
 * and truly having are the same, and X and O follow.
 *
 * WHAT MAKES IT EXHAUSTIVE. No run is cut short (ranks.pml says why): any number of rounds, extensions, expiries and
 * restarts. SLOTS only bounds how many rounds matter at once: in progress, held, or over with a message that could still
 * do something. The network is a soup: a message once sent may arrive at any later time, in any order, often or never,
 * and a reply may be counted as late as can be. So loss, delay, duplication and reordering need no rules of their own;
 * nor does the crash of a client, which is never scheduled again.
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef N
#define N 3                     /* nodes */
#endif
#define MAJORITY (N / 2 + 1)

/* the life of a round */
#define FREE      0             /* slot unused */
#define ASKING    1             /* take sent to all nodes, no majority counted yet */
#define HOLDING   2             /* granted: the client believes that it holds */
#define EXTENDING 3             /* the same, with an extension on its way */
#define OVER      4             /* ended; its messages may still arrive */
#define OPEN      5             /* given up without a grant; the client may go on with the same owner */

/* a node */
byte hold[N];                   /* slot + 1 of the round that holds here, 0 = free */
bit  out[N];                    /* it ran out: free for others; the holder is still known, and may extend (rule 5) */
byte mark[N];                   /* highest ballot accepted, or released */
byte fresh[N];                  /* TIMELY: 2 = answers the extension on its way, 1 = its holder counts on it, 0 = nobody does */

/* a round */
byte state[SLOTS];
byte ballot[SLOTS];
byte owner[SLOTS];              /* equal numbers = same owner */
bit  yes[SLOTS * N];            /* which nodes said yes to the take, or to the extension on its way */
bit  won[SLOTS];                /* they are a majority; the client may count it now, later, or never */
byte doomed[SLOTS];             /* ghost: 1, 2 = granting this would break R (E when extending), U */

/* who may come back to a node that is being re-seeded (reseed.pml): slot + 1, or */
#define NOBODY (SLOTS + 1)      /* one of those who were read does not hold the name */
#define DOUBT  (SLOTS + 2)      /* those with the largest mark so far do not agree, or that mark is not their holder's */

byte top;                       /* ghost: the largest token granted so far */
byte i;                         /* scratch inside one step, zero between steps */

#define active(s)    (state[s] >= ASKING && state[s] <= EXTENDING)
#define believes(s)  (state[s] == HOLDING || state[s] == EXTENDING)
#define held(n)      (hold[n] != 0 && !out[n])
#define holds(n, s)  (hold[n] == (s) + 1 && !out[n])
#define mine(n, s)   (held(n) && owner[hold[n] - 1] == owner[s])
#if N == 3
#define SUM(f, x)    (f(0, x) + f(1, x) + f(2, x))
#else
#define SUM(f, x)    (f(0, x) + f(1, x) + f(2, x) + f(3, x) + f(4, x))
#endif
#ifdef COUNTERS                 /* `naive` and `id-after`: no ballots, plain numbers, at most SLOTS rounds in all */
#define has_token(s) believes(s)
#else
#define has_token(s) true
#endif

#define EACH(v, limit) v = 0; do :: v < limit ->
#define DONE(v)        v++ :: else -> break od; v = 0
#define WHEN(cond)     if :: cond ->
#define END            :: else fi

/* -DCHECKS=2 and so on: check some promises only, to see what else breaks */
#ifndef CHECKS
#define CHECKS 63
#endif
#define BREAKS(p, cond) WHEN((CHECKS & p) && (cond)) printf("BROKEN %d\n", p); assert(false) END
#define U 1
#define R 2
#define F 4
#define E 8
#define X 16
#define O 32
#define W 64                    /* no promise, but a witness: something good that must be possible (reseed.pml) */

inline check_rightful_holder() {
  EACH(i, SLOTS) BREAKS(F, active(i) && has_token(i) && SUM(holds, i) >= MAJORITY && ballot[i] < top); DONE(i)
}

#include "ranks.pml"
#include "vouch.pml"
#include "reseed.pml"
#include "client.pml"
#include "node.pml"

init {
  atomic {
    EACH(i, CHOICES) run Begin(i); DONE(i);
    EACH(i, SLOTS) run Client(i); DONE(i);
    EACH(i, N) run Node(i); DONE(i);
    EACH(i, N * SLOTS) run Wire(i / SLOTS, i % SLOTS); DONE(i)
  }
}
