// Placing order, for users: all waiting instances in the order in which they would be placed. It changes nothing.

import { compareAcross, compareRanks, levelOf, type Rank } from './order.ts';
import type { Shares } from './shares.ts';
import { headSinceMs, type Shape, type Waiting } from './waiting.ts';

interface Ranked {
  readonly waiting: Waiting;
  readonly rank: Rank;
}

export function placingOrder(
  shapes: Iterable<Shape>,
  { shares, agingMs, nowMs }: { readonly shares: Shares; readonly agingMs: number; readonly nowMs: number },
): Waiting[] {
  const byProject = new Map<string, Ranked[]>();
  for (const shape of shapes) {
    for (const line of shape.lines.values()) {
      let ranked = byProject.get(line.project);
      if (!ranked) byProject.set(line.project, (ranked = []));
      const head = line.all.first();
      for (const waiting of line.all) {
        // Only the head of a line ages.
        const level = levelOf(line.priority, waiting === head ? headSinceMs(line) : nowMs, agingMs);
        ranked.push({ waiting, rank: { level, createdAtMs: waiting.createdAtMs, id: waiting.id } });
      }
    }
  }
  return merged(byProject, shares);
}

/**
 * Merges the projects' lines, each in its own order; among projects in the order of `take`, counting each placement at
 * once.
 */
function merged(byProject: ReadonlyMap<string, Ranked[]>, shares: Shares): Waiting[] {
  const standing = [...byProject].map(([project, ranked]) => ({
    project,
    ranked: ranked.sort((a, b) => compareRanks(a.rank, b.rank)),
    at: 0,
    more: new Map<string, number>(),
    share: shares.of(project),
  }));
  const order: Waiting[] = [];
  for (;;) {
    let best: (typeof standing)[number] | undefined;
    for (const each of standing) {
      const mine = each.ranked[each.at]?.rank;
      const leading = best?.ranked[best.at]?.rank;
      if (mine && (!best || !leading || compareAcross(mine, each.share, leading, best.share) < 0)) best = each;
    }
    const waiting = best?.ranked[best.at]?.waiting;
    if (!best || !waiting) return order;
    order.push(waiting);
    best.at += 1;
    const { amounts } = waiting.line.shape.request;
    for (const resourceClass in amounts)
      best.more.set(resourceClass, (best.more.get(resourceClass) ?? 0) + (amounts[resourceClass] ?? 0));
    best.share = shares.with(best.project, Object.fromEntries(best.more));
  }
}
