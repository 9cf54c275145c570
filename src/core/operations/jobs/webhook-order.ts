// Which of two pushes to a branch is the newer: told by the chain of `before` and `after`, never by arrival, because forges
// deliver in any order. Pure.
//
//   before ── push ──▶ after = before of the next ── push ──▶ after
//
// A push that follows a known one supersedes it; one that a known push follows has arrived late, and is superseded at once.
// Where the chain has a gap or a circle, or the push is forced, the forge is asked for the head of the branch.

/** A job that an earlier webhook asked for, of the same hook, repository, ref and context. */
export interface KnownPush {
  readonly key: string;
  readonly name: string;
  readonly sha: string;
  readonly before: string | undefined;
  /** It has not ended, and is not being cancelled. */
  readonly live: boolean;
}

interface IncomingPush {
  readonly sha: string;
  readonly before: string | undefined;
  readonly chained: boolean;
  readonly forced: boolean;
}

/** What the forge said of the branch. */
export interface AskedHead {
  /** Undefined: it cannot be asked, or did not answer. */
  readonly sha: string | undefined;
  /** Keys of the jobs that were known when it was asked. */
  readonly seen: ReadonlySet<string>;
}

export interface Order {
  /** Ask for the head of the branch, and decide again. The rest is what holds without an answer. */
  readonly ask: boolean;
  /** Keys of the live jobs that the incoming push supersedes. */
  readonly supersedes: readonly string[];
  /** The name of the job that supersedes the incoming push. */
  readonly supersededBy: string | undefined;
}

export function orderOf(known: readonly KnownPush[], incoming: IncomingPush, head?: AskedHead): Order {
  const older = reach(known, incoming.before, { from: (push) => push.sha, to: (push) => push.before });
  const newer = reach(known, incoming.sha, { from: (push) => push.before, to: (push) => push.sha });
  const circle = [...older].some((push) => newer.has(push));
  const live = known.filter((push) => push.live);
  const unlinked = live.filter((push) => !older.has(push) && !newer.has(push));
  const doubtful = circle || unlinked.length > 0 || (incoming.forced && live.length > 0);
  const ask = doubtful && (head === undefined || live.some(({ key }) => !head.seen.has(key)));
  const told = doubtful && head?.sha !== undefined ? byHead(live, incoming, { head, older, newer }) : undefined;
  return { ask, ...(told ?? byChain(live, incoming, { older, newer, circle, head })) };
}

type Verdict = Omit<Order, 'ask'>;

interface Linked {
  readonly older: ReadonlySet<KnownPush>;
  readonly newer: ReadonlySet<KnownPush>;
}

/** Undefined: the head is of neither. */
function byHead(
  live: readonly KnownPush[],
  { sha }: IncomingPush,
  { head, older, newer }: Linked & { readonly head: AskedHead },
): Verdict | undefined {
  // Those that came while it was asked may be newer.
  if (head.sha === sha)
    return { supersedes: keysOf(live.filter(({ key }) => head.seen.has(key))), supersededBy: undefined };
  // The head that the incoming push has moved away from is an answer of before the push: forges serve these for a while.
  const newest = live.find((push) => push.sha === head.sha && (!older.has(push) || newer.has(push)));
  if (newest === undefined) return undefined;
  return { supersedes: keysOf(live.filter((push) => older.has(push) && !newer.has(push))), supersededBy: newest.name };
}

function byChain(
  live: readonly KnownPush[],
  { chained }: IncomingPush,
  { older, newer, circle, head }: Linked & { readonly circle: boolean; readonly head: AskedHead | undefined },
): Verdict {
  const silent = head !== undefined && head.sha === undefined;
  // Without a chain and without an answer there is only the order of arrival.
  if (silent && (circle || (!chained && newer.size === 0)))
    return { supersedes: keysOf(live), supersededBy: undefined };
  if (circle) return { supersedes: [], supersededBy: undefined };
  const [next] = newer;
  return { supersedes: keysOf(live.filter((push) => older.has(push))), supersededBy: next?.name };
}

function keysOf(pushes: readonly KnownPush[]): readonly string[] {
  return pushes.map(({ key }) => key);
}

/** All that are linked to a commit in one direction, the nearest first. */
function reach(
  known: readonly KnownPush[],
  start: string | undefined,
  { from, to }: Readonly<Record<'from' | 'to', (push: KnownPush) => string | undefined>>,
): ReadonlySet<KnownPush> {
  const byStart = Map.groupBy(known, from);
  const found = new Set<KnownPush>();
  const ends = [start];
  for (const end of ends) {
    if (end === undefined) continue;
    for (const push of byStart.get(end) ?? []) {
      if (found.has(push)) continue;
      found.add(push);
      ends.push(to(push));
    }
  }
  return found;
}
