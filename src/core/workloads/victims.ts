// Which copies go first. The first difference decides, as docs/workloads.md lists them.

import type { Copy } from './copy.ts';

/** The first `count` to go; protected ones never do. Crowded hosts are counted anew after each. */
export function victims(copies: readonly Copy[], count: number, revision: number): readonly Copy[] {
  if (count <= 0) return [];
  const ranked = copies.filter((copy) => !copy.protected).toSorted((a, b) => compareFixed(a, b, revision));
  if (count >= ranked.length) return ranked;
  const onHost = new Map<string, number>();
  for (const { host = '' } of copies) onHost.set(host, (onHost.get(host) ?? 0) + 1);
  const chosen: Copy[] = [];
  for (let begin = 0; chosen.length < count; ) {
    const head = ranked[begin];
    if (head === undefined) break;
    let end = begin + 1;
    for (let next = ranked[end]; next && compareFixed(head, next, revision) === 0; next = ranked[end]) end += 1;
    chosen.push(...mostCrowded(ranked.slice(begin, end), count - chosen.length, onHost));
    begin = end;
  }
  return chosen;
}

/** Of copies that are equal otherwise: the one on the host with most copies, then by age. */
function mostCrowded(equal: readonly Copy[], count: number, onHost: Map<string, number>): readonly Copy[] {
  const left = equal.toSorted(compareAge);
  const chosen: Copy[] = [];
  while (chosen.length < count && left.length > 0) {
    let at = 0;
    let most = -1;
    for (const [i, { host = '' }] of left.entries()) {
      const crowd = onHost.get(host) ?? 0;
      if (crowd > most) [at, most] = [i, crowd];
    }
    const [copy] = left.splice(at, 1);
    if (copy === undefined) break;
    chosen.push(copy);
    onHost.set(copy.host ?? '', most - 1);
  }
  return chosen;
}

/** No host, host not Ready, not ready, old revision, lower deletion cost: what does not change while others are chosen. */
function compareFixed(a: Copy, b: Copy, revision: number): number {
  return (
    first(a.host === undefined, b.host === undefined) ||
    first(!a.hostReady, !b.hostReady) ||
    first(!a.ready, !b.ready) ||
    first(a.revision !== revision, b.revision !== revision) ||
    a.cost - b.cost
  );
}

/** More restarts, newer, id. */
function compareAge(a: Copy, b: Copy): number {
  return b.restarts - a.restarts || b.createdAtMs - a.createdAtMs || (a.id < b.id ? -1 : 1);
}

function first(a: boolean, b: boolean): number {
  return Number(b) - Number(a);
}
