// Mix: what instances ask for, counted as they arrive, so that a rule can tell which leftovers of a host are useful.
// Rules read a fixed picture (`typical`), replaced only when the mix has changed enough, because each new picture
// invalidates every ranking.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import { type Demand, wholeOf } from '../../ledger/tree.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { demandOf } from '../demand.ts';

/** GPUs requested: `count` of them, `milli` of each. */
export interface GpuAsk {
  readonly count: number;
  readonly milli: number;
  /** Traits of which the GPU has one; empty: any GPU. */
  readonly models: readonly string[];
}

interface Kind {
  readonly cpus: number;
  readonly gpu: GpuAsk | null;
  count: number;
}

/** Requests with equal GPU amounts, and the CPUs they ask for. */
export interface GpuClass {
  readonly count: number;
  readonly milli: number;
  /** Ascending. */
  readonly cpus: readonly number[];
  /** The share of all requests that ask for no more CPUs than the same entry of `cpus`. Ascending. */
  readonly shareUpTo: readonly number[];
  /** The share of all of them. */
  readonly share: number;
}

/** The typical requests as seen by a host with one kind of GPUs. */
export interface TypicalThere {
  /** The share of requests for no GPU, or for another kind only. */
  readonly strangers: number;
  readonly classes: readonly GpuClass[];
}

/** The picture is checked again when the number of new requests reaches this share of those remembered. */
const lookAgainShare = 0.5;
/** At this count all counts are halved, so that old requests fade. A picture then rests on about 10,000 requests. */
const rememberedMax = 1 << 14;
/** The picture is kept while at most this share of the requests has moved from one kind to another. */
const driftMax = 0.1;
/** Beyond this number the rarest classes are left out. A rule evaluates each class for each host. */
const classesMax = 64;

export class Typical {
  /** Average CPUs requested per thousandth of a GPU; 0 when no request has any. */
  readonly cpusPerMilli: number;
  /** Number of requests in the picture. */
  readonly total: number;
  readonly #kinds: readonly Readonly<Kind>[];
  readonly #there = new Map<string, TypicalThere>();

  constructor(kinds: Iterable<Readonly<Kind>>) {
    this.#kinds = [...kinds];
    let cpus = 0;
    let milli = 0;
    let total = 0;
    for (const { cpus: each, gpu, count } of this.#kinds) {
      total += count;
      cpus += count * each;
      if (gpu) milli += count * gpu.count * gpu.milli;
    }
    this.total = total;
    this.cpusPerMilli = milli === 0 ? 0 : cpus / milli;
  }

  /** `traits`: those of the GPUs there. */
  at(traits: readonly string[]): TypicalThere {
    const key = traits.join();
    let there = this.#there.get(key);
    if (!there) this.#there.set(key, (there = this.#lookFrom(traits)));
    return there;
  }

  #lookFrom(traits: readonly string[]): TypicalThere {
    const classes = new Map<string, { readonly gpu: GpuAsk; readonly members: Readonly<Kind>[]; total: number }>();
    let strangers = 0;
    for (const kind of this.#kinds) {
      const { gpu, count } = kind;
      if (!gpu || !acceptsOne(gpu, traits)) {
        strangers += count;
        continue;
      }
      const key = `${gpu.count}x${gpu.milli}`;
      const known = classes.get(key);
      if (known) {
        known.members.push(kind);
        known.total += count;
      } else classes.set(key, { gpu, members: [kind], total: count });
    }
    const largest = [...classes.values()].sort((a, b) => b.total - a.total).slice(0, classesMax);
    return {
      strangers: this.total === 0 ? 1 : strangers / this.total,
      classes: largest.map(({ gpu, members, total }) => ({
        count: gpu.count,
        milli: gpu.milli,
        ...cpusOf(members, this.total),
        share: total / this.total,
      })),
    };
  }
}

function acceptsOne({ models }: GpuAsk, traits: readonly string[]): boolean {
  return models.length === 0 || models.some((model) => traits.includes(model));
}

function cpusOf(members: readonly Readonly<Kind>[], total: number): Pick<GpuClass, 'cpus' | 'shareUpTo'> {
  const cpus: number[] = [];
  const shareUpTo: number[] = [];
  let sum = 0;
  for (const { cpus: each, count } of members.toSorted((a, b) => a.cpus - b.cpus)) {
    sum += count;
    if (cpus.at(-1) === each) shareUpTo.pop();
    else cpus.push(each);
    shareUpTo.push(sum / total);
  }
  return { cpus, shareUpTo };
}

export class Mix {
  /** Read by rules. */
  typical: Typical;
  readonly #snapshot: Snapshot;
  readonly #kinds = new Map<string, Kind>();
  #total = 0;
  /** Requests since the picture was last checked. */
  #asked = 0;
  /** The counts by kind when the picture was taken, for comparison. */
  #pictured = new Map<string, number>();

  /** Starts from the existing instances; ended ones are unknown. */
  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    for (const { value } of snapshot.list('instance')) this.#count(value.spec);
    this.typical = this.#takePicture();
  }

  /** Returns whether there is a new picture. Ended instances still count: similar ones will arrive. */
  apply(before: Instance | null, after: Instance | null): boolean {
    if (!after || before?.spec === after.spec) return false;
    this.#count(after.spec);
    if (this.#asked < 1 + lookAgainShare * this.#total) return false;
    this.#asked = 0;
    if (!this.#hasDrifted()) return false;
    this.typical = this.#takePicture();
    return true;
  }

  #count(spec: InstanceSpec): void {
    const demand = demandOf(this.#snapshot, spec);
    const gpu = gpuAskOf(demand);
    const cpus = wholeOf(demand)['VCPU'] ?? 0;
    const name = gpu ? `${cpus},${gpu.count},${gpu.milli},${gpu.models.join()}` : String(cpus);
    let kind = this.#kinds.get(name);
    if (!kind) this.#kinds.set(name, (kind = { cpus, gpu, count: 0 }));
    kind.count += 1;
    this.#total += 1;
    this.#asked += 1;
    if (this.#total >= rememberedMax) this.#halve();
  }

  #halve(): void {
    this.#total = 0;
    for (const [name, kind] of this.#kinds) {
      kind.count = Math.floor(kind.count / 2);
      this.#total += kind.count;
      if (kind.count === 0) this.#kinds.delete(name);
    }
  }

  #hasDrifted(): boolean {
    const before = Math.max(1, this.typical.total);
    const now = Math.max(1, this.#total);
    let moved = 0;
    for (const [name, count] of this.#pictured) if (!this.#kinds.has(name)) moved += count / before;
    for (const [name, { count }] of this.#kinds)
      moved += Math.abs(count / now - (this.#pictured.get(name) ?? 0) / before);
    return moved / 2 > driftMax;
  }

  #takePicture(): Typical {
    this.#pictured = new Map([...this.#kinds].map(([name, { count }]) => [name, count]));
    this.#asked = 0;
    return new Typical([...this.#kinds.values()].map((kind) => ({ ...kind })));
  }
}

/** The GPUs in a demand: its first portion of them; null when it has none. */
export function gpuAskOf({ amounts, portions }: Demand): GpuAsk | null {
  for (const { amounts: each, count, traitsAnyOf } of portions) {
    const milli = each[gpuClass] ?? 0;
    if (milli > 0) return { count, milli, models: traitsAnyOf };
  }
  const plain = amounts[gpuClass] ?? 0;
  return plain > 0 ? { count: 1, milli: plain, models: [] } : null;
}
