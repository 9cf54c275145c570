// Order: which of the waiting instances is first. Plain data and comparisons. Nothing here changes as time passes, so no list has to be
// sorted again because of it.
//
// Waiting instances of one project, priority and shape form one line, first come first served (by creation time; within one
// millisecond by id, which grows: base/ids.ts). The lines are compared by:
//
//   1. the highest effective priority: `spec.priority`, plus one for each `agingMs` that the head of the line has been its head;
//   2. among equals, the project with the least dominant share of the fleet, divided by its weight (DRF, Ghodsi et al., NSDI 2011);
//   3. among equals, the older head.
//
// Only the head of a line ages. Waiting behind instances of the same line earns nothing, so a long backlog never outgrows the fair share
// of a project that arrives later; yet every line advances, however much arrives with a higher priority or for a smaller share.

/** The properties of a line that the order compares. */
export interface Rank {
  /** Effective priority without the part that grows equally for all: priority − ⌊headSinceMs / agingMs⌋. */
  readonly level: number;
  readonly createdAtMs: number;
  readonly id: string;
}

export function levelOf(priority: number, headSinceMs: number, agingMs: number): number {
  return priority - Math.floor(headSinceMs / agingMs);
}

/** Within one project. Negative: `a` comes first. */
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
