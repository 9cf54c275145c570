// Mix: what instances ask for, counted as they come, so that a rule can tell which leftovers of a host somebody would want. Rules read a
// still picture (`typical`) that is taken anew only when the mix has become another one: with each picture every ranking is built anew.

import { gpuClass } from '../../../api/resources/host-rules.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import { type Demand, wholeOf } from '../../ledger/tree.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { demandOf } from '../demand.ts';

/** What is asked of GPUs: `count` of them, `milli` of each. */
export interface GpuAsk {
  readonly count: number;
  readonly milli: number;
  /** Traits, of which the GPU bears one; empty: any will do. */
  readonly models: readonly string[];
}

interface Kind {
  readonly cpus: number;
  readonly gpu: GpuAsk | null;
  count: number;
}

/** Those who ask alike for GPUs, and how many CPUs they ask for besides. */
export interface GpuClass {
  readonly count: number;
  readonly milli: number;
  /** Rising. */
  readonly cpus: readonly number[];
  /** Of all that is asked for: the share of those who ask for no more CPUs than the entry of `cpus` says. Rising. */
  readonly shareUpTo: readonly number[];
  /** The share of all of them. */
  readonly share: number;
}

/** What is typically asked for, as seen by a host whose GPUs are of one kind. */
export interface TypicalThere {
  /** The share of those who ask for no GPU, or for none of this kind. */
  readonly strangers: number;
  readonly classes: readonly GpuClass[];
}

/** When so many more have asked, in relation to all that are remembered, the picture is looked at again. */
const lookAgainShare = 0.5;
/** With so many, all counts are halved: what was asked for long ago fades. A picture has then some 10,000 to rest on. */
const rememberedMax = 1 << 14;
/** The picture is kept while no more than this share of what is asked for has moved from one kind to another. */
const driftMax = 0.1;
/** More classes than this are not told apart: the rarest are left out. A rule looks at each of them for each host. */
const classesMax = 64;

export class Typical {
  /** CPUs asked for by one thousandth of a GPU, on average; 0 when nobody asks for any. */
  readonly cpusPerMilli: number;
  /** How many it was taken of. */
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
  /** What rules read. */
  typical: Typical;
  readonly #snapshot: Snapshot;
  readonly #kinds = new Map<string, Kind>();
  #total = 0;
  /** Since the picture was last looked at. */
  #asked = 0;
  /** The picture, to compare with: by kind, how many. */
  #pictured = new Map<string, number>();

  /** From what is there: who is gone is not known of. */
  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    for (const { value } of snapshot.list('instance')) this.#count(value.spec);
    this.typical = this.#takePicture();
  }

  /** Answers whether there is a new picture. Who goes still counts: others like it will come. */
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

/** What a demand asks of GPUs: its first portion of them; null when nothing. */
export function gpuAskOf({ amounts, portions }: Demand): GpuAsk | null {
  for (const { amounts: each, count, traitsAnyOf } of portions) {
    const milli = each[gpuClass] ?? 0;
    if (milli > 0) return { count, milli, models: traitsAnyOf };
  }
  const plain = amounts[gpuClass] ?? 0;
  return plain > 0 ? { count: 1, milli: plain, models: [] } : null;
}
