// Which copies go first. The first difference decides, as docs/workloads.md lists them.

import type { Copy } from './copy.ts';

interface Wanted {
  readonly count: number;
  /** The present one. */
  readonly revision: number;
  readonly nowMs: number;
}

/** The first `count` to go; protected ones never do. Copies per host and zone are counted again after each. */
export function victims(copies: readonly Copy[], { count, revision, nowMs }: Wanted): readonly Copy[] {
  if (count <= 0) return [];
  const ranked = copies.filter((copy) => !copy.protected).toSorted((a, b) => compareFixed(a, b, revision));
  if (count >= ranked.length) return ranked;
  const crowds = new Crowds(copies);
  const chosen: Copy[] = [];
  for (let begin = 0; chosen.length < count; ) {
    const head = ranked[begin];
    if (head === undefined) break;
    let end = begin + 1;
    for (let next = ranked[end]; next && compareFixed(head, next, revision) === 0; next = ranked[end]) end += 1;
    const equal = ranked.slice(begin, end).toSorted((a, b) => compareAge(a, b, nowMs));
    chosen.push(...mostCrowded(equal, count - chosen.length, crowds));
    begin = end;
  }
  return chosen;
}

/** Of copies that are equal otherwise: the one on the host, then in the zone, with most copies; then the first. */
function mostCrowded(equal: readonly Copy[], count: number, crowds: Crowds): readonly Copy[] {
  const left = [...equal];
  const chosen: Copy[] = [];
  while (chosen.length < count && left.length > 0) {
    let at = 0;
    for (let i = 1; i < left.length; i++) if (crowds.isMoreCrowded(left[i], left[at])) at = i;
    const [copy] = left.splice(at, 1);
    if (copy === undefined) break;
    chosen.push(copy);
    crowds.remove(copy);
  }
  return chosen;
}

/** How many copies there are on each host and in each zone. */
class Crowds {
  readonly #onHost = new Map<string, number>();
  readonly #inZone = new Map<string, number>();

  constructor(copies: readonly Copy[]) {
    for (const copy of copies) this.#add(copy, 1);
  }

  remove(copy: Copy): void {
    this.#add(copy, -1);
  }

  isMoreCrowded(a: Copy | undefined, b: Copy | undefined): boolean {
    const byHost = this.#hostOf(a) - this.#hostOf(b);
    return byHost > 0 || (byHost === 0 && this.#zoneOf(a) > this.#zoneOf(b));
  }

  #hostOf(copy: Copy | undefined): number {
    return this.#onHost.get(copy?.host ?? '') ?? 0;
  }

  #zoneOf(copy: Copy | undefined): number {
    return this.#inZone.get(copy?.zone ?? '') ?? 0;
  }

  #add({ host = '', zone = '' }: Copy, count: number): void {
    this.#onHost.set(host, (this.#onHost.get(host) ?? 0) + count);
    this.#inZone.set(zone, (this.#inZone.get(zone) ?? 0) + count);
  }
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

/** Ready for less time, more restarts, newer, id. */
function compareAge(a: Copy, b: Copy, nowMs: number): number {
  return (
    readyTimeOf(a, nowMs) - readyTimeOf(b, nowMs) ||
    b.restarts - a.restarts ||
    b.createdAtMs - a.createdAtMs ||
    (a.id < b.id ? -1 : 1)
  );
}

/** In powers of two, so that copies of nearly one age are told apart by what follows. */
function readyTimeOf({ ready, readyAtMs }: Copy, nowMs: number): number {
  return ready ? Math.floor(Math.log2(Math.max(1, nowMs - readyAtMs))) : 0;
}

function first(a: boolean, b: boolean): number {
  return Number(b) - Number(a);
}
