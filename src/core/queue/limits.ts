// Limits: how many instances may be placed and not ended at once, in all or of one image. Counted by allocations in all
// their forms: a release that is not yet durable still counts, so no interleaving exceeds a limit.

import type { Instance } from '../../api/resources/instance.ts';
import { holdsOnlyDisk } from '../ledger/ledger.ts';
import type { Policy } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import type { RecordChange, Snapshot } from '../state/snapshot.ts';

/** At most `max` of the instances that match a word. */
export interface Limit {
  readonly reason: 'ConcurrencyLimit' | 'CapacityMap';
  readonly word: string;
  readonly max: number;
}

export type LimitPolicy = Pick<Policy, 'maxConcurrency' | 'concurrencyLabel' | 'capacityMap'>;

/** The word that matches all instances. */
const everything = '';
/** The value of the label `runs-on` counts as a name of the image: runner jobs set it. */
const runsOnLabel = 'runs-on';

/** The limits that apply to an instance. */
export function limitsOn(
  snapshot: Snapshot,
  { maxConcurrency, concurrencyLabel, capacityMap }: LimitPolicy,
  instance: Instance,
): Limit[] {
  const limits: Limit[] = [];
  if (maxConcurrency === undefined && capacityMap === undefined) return limits;
  const words = wordsOf(snapshot, instance);
  if (maxConcurrency !== undefined) {
    const word = concurrencyLabel ?? everything;
    if (words.has(word)) limits.push({ reason: 'ConcurrencyLimit', word, max: maxConcurrency });
  }
  for (const [word, max] of Object.entries(capacityMap ?? {}))
    if (words.has(word)) limits.push({ reason: 'CapacityMap', word, max });
  return limits;
}

/** `CapacityMap: 4 of 4 ubuntu-22.04`. */
export function describeLimit({ reason, word, max }: Limit, taken: number, asked: number): string {
  const what = word === everything ? 'instances' : word;
  return `${reason}: ${taken} of ${max} ${what}${asked > 1 ? ` are there, and ${asked} more would come at once` : ''}`;
}

export function gateOf({ word }: Limit): string {
  return `limit/${word}`;
}

/** How many of them count towards each limit, by its gate. */
export function countAsked(
  all: Iterable<readonly Limit[]>,
): ReadonlyMap<string, { readonly limit: Limit; readonly count: number }> {
  const asked = new Map<string, { readonly limit: Limit; count: number }>();
  for (const limits of all) {
    for (const limit of limits) {
      const known = asked.get(gateOf(limit));
      if (known) known.count += 1;
      else asked.set(gateOf(limit), { limit, count: 1 });
    }
  }
  return asked;
}

/**
 * The gate is rewritten by every Plan that counts towards the limit, so that of two Plans decided on the same count
 * only one commits.
 */
export function passGate(snapshot: Snapshot, name: string): Change {
  const key = keys.gate(name);
  const gate = snapshot.get('gate', key);
  return {
    key,
    ifRevision: gate?.revision ?? 0,
    value: { kind: 'gate', name, generation: (gate?.value.generation ?? 0) + 1 },
  };
}

/** The gates of several limits. Two limits with the same count share a gate, which is written once. */
export function passGates(snapshot: Snapshot, names: Iterable<string>): Change[] {
  return Array.from(new Set(names), (name) => passGate(snapshot, name));
}

/** The number of instances with an allocation, by word. Part of the queue, which passes on every change. */
export class LimitCounts {
  readonly #snapshot: Snapshot;
  readonly #taken = new Map<string, number>();
  readonly #asked = new Set<string>();
  /** By host, then consumer: the words under which it was counted. */
  readonly #counted = new Map<string, Map<string, ReadonlySet<string>>>();
  /**
   * Hosts with the number of allocations whose instance is hidden by an uncommitted one of the same name. Such an
   * allocation counts towards every limit.
   */
  readonly #hidden = new Map<string, number>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    for (const { value } of snapshot.list('host')) this.#count(value.metadata.name);
  }

  taken(word: string): number {
    this.#asked.add(word);
    let hidden = 0;
    if (word !== everything) for (const count of this.#hidden.values()) hidden += count;
    return (this.#taken.get(word) ?? 0) + hidden;
  }

  /** Returns the words whose count fell. */
  apply({ kind, before, after }: RecordChange): ReadonlySet<string> {
    if (kind === 'instance') return this.#hidden.size === 0 ? none : this.#seeHidden();
    const host = after?.kind === 'allocation' ? after.host : before?.kind === 'allocation' ? before.host : undefined;
    return kind !== 'allocation' || host === undefined ? none : this.#count(host);
  }

  #seeHidden(): ReadonlySet<string> {
    const fewer = new Set<string>();
    for (const host of [...this.#hidden.keys()]) for (const word of this.#count(host)) fewer.add(word);
    return fewer;
  }

  #count(host: string): ReadonlySet<string> {
    const known = this.#counted.get(host) ?? new Map<string, ReadonlySet<string>>();
    const now = new Map<string, ReadonlySet<string>>();
    let hidden = 0;
    for (const allocation of this.#snapshot.allocationsHeldOnHost(host)) {
      const { consumer } = allocation;
      if (consumer.kind !== undefined || holdsOnlyDisk(allocation)) continue;
      const id = `${consumer.id}.${consumer.incarnation}`;
      if (now.has(id)) continue;
      const before = known.get(id);
      const instance = before && before !== justOne ? undefined : this.#snapshot.instanceById(consumer.id)?.value;
      const words = instance ? wordsOf(this.#snapshot, instance) : (before ?? justOne);
      if (words === justOne) hidden += 1;
      now.set(id, words);
    }
    const fewer = new Set<string>();
    for (const [id, words] of now) if (known.get(id) !== words) for (const word of words) this.#add(word, 1);
    for (const [id, words] of known) {
      if (now.get(id) === words) continue;
      for (const word of words) {
        this.#add(word, -1);
        fewer.add(word);
      }
    }
    if (hidden < (this.#hidden.get(host) ?? 0)) for (const word of this.#asked) fewer.add(word);
    if (hidden > 0) this.#hidden.set(host, hidden);
    else this.#hidden.delete(host);
    if (now.size > 0) this.#counted.set(host, now);
    else this.#counted.delete(host);
    return fewer;
  }

  #add(word: string, by: 1 | -1): void {
    const sum = (this.#taken.get(word) ?? 0) + by;
    if (sum === 0) this.#taken.delete(word);
    else this.#taken.set(word, sum);
  }
}

const none: ReadonlySet<string> = new Set();
const justOne: ReadonlySet<string> = new Set([everything]);

function wordsOf(snapshot: Snapshot, { metadata, spec }: Instance): ReadonlySet<string> {
  const words = new Set([everything, spec.image]);
  const image = snapshot.imageByName(spec.image)?.value;
  if (image) for (const name of [image.metadata.name, ...image.spec.aliases]) words.add(name);
  for (const [key, value] of Object.entries(metadata.labels)) {
    words.add(`${key}=${value}`);
    if (key === runsOnLabel) words.add(value);
  }
  return words;
}
