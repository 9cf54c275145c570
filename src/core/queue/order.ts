// Order: which of the waiting instances is first. Plain data and comparisons; nothing here changes as time passes, so nothing is ever
// sorted anew because of it.
//
// Waiting instances of one project, priority and shape stand in one line, first come first served (creation; in one
// millisecond the id, which grows: base/ids.ts). Of the lines:
//
//   1. the highest effective priority: `spec.priority`, and one more for each `agingMs` that the head of the line has been its head;
//   2. among equals, the project with the least dominant share of the fleet, divided by its weight (DRF, Ghodsi et al., NSDI 2011);
//   3. among equals, the older head.
//
// Only the head of a line ages. That others of one's own stand in front is nobody's fault, so a long backlog never outgrows the fair
// share of a project that comes later; yet every line moves on, however much comes with a higher priority or for a smaller share.

/** What the order reads of a line. */
export interface Rank {
  /** Effective priority, less what all gain as time passes: priority − ⌊headSinceMs / agingMs⌋. */
  readonly level: number;
  readonly createdAtMs: number;
  readonly id: string;
}

export function levelOf(priority: number, headSinceMs: number, agingMs: number): number {
  return priority - Math.floor(headSinceMs / agingMs);
}

/** Within one project. Negative: `a` is first. */
export function compareRanks(a: Rank, b: Rank): number {
  return b.level - a.level || compareAges(a, b);
}

/** `shareA` and `shareB`: of the projects, by weight. */
export function compareAcross(a: Rank, shareA: number, b: Rank, shareB: number): number {
  return b.level - a.level || shareA - shareB || compareAges(a, b);
}

export function compareAges(
  a: { readonly createdAtMs: number; readonly id: string },
  b: { readonly createdAtMs: number; readonly id: string },
): number {
  return a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
