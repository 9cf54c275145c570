// Held allocations: by provider, how much is held; by host, which allocations hold it. An allocation with uncommitted
// changes has several forms, and holds the most of each class that any of them has. Nothing here is decided.

import { assert } from '../../base/assert.ts';
import { volumeDefinition } from '../../api/resources/volume.ts';
import { prefixOf } from './keys.ts';
import type { Layers } from './layers.ts';
import type { Allocation } from './records.ts';

/** By provider id, then resource class. */
type Held = Allocation['amounts'];
type Forms = readonly Allocation[];

export class HeldAllocations {
  readonly #keysByHost = new Map<string, Set<string>>();
  readonly #volumeKeysByHost = new Map<string, Set<string>>();
  readonly #portKeysByHost = new Map<string, Set<string>>();
  readonly #used = new Map<string, Map<string, number>>();

  /** Keys of the allocations that may hold something on the host. */
  keysOn(host: string): Iterable<string> {
    return this.#keysByHost.get(host) ?? noKeys;
  }

  /** Those of them that may hold ports. */
  portKeysOn(host: string): Iterable<string> {
    return this.#portKeysByHost.get(host) ?? noKeys;
  }

  /** Number of allocations on the host, without those of volumes. */
  countOn(host: string): number {
    return (this.#keysByHost.get(host)?.size ?? 0) - (this.#volumeKeysByHost.get(host)?.size ?? 0);
  }

  /** By resource class; one object from the first use of the provider on, updated in place. */
  usedBy(providerId: string): ReadonlyMap<string, number> {
    return this.#used.get(providerId) ?? nothingUsed;
  }

  /** Replaces the forms of an allocation. */
  apply(key: string, { before, after }: { readonly before: Forms; readonly after: Forms }): void {
    const heldBefore = mostOf(before);
    const heldAfter = mostOf(after);
    if (heldBefore !== heldAfter) {
      this.#addUse(heldBefore, -1);
      this.#addUse(heldAfter, +1);
    }
    for (const host of hostsOf(before, after)) {
      const ports = holdsPorts(after, host);
      if (holdsPorts(before, host) !== ports) indexUnder(this.#portKeysByHost, host, key, ports ? +1 : -1);
      const is = anyOn(after, host);
      if (anyOn(before, host) === is) continue;
      indexUnder(this.#keysByHost, host, key, is ? +1 : -1);
      if (isOfVolume(key)) indexUnder(this.#volumeKeysByHost, host, key, is ? +1 : -1);
    }
  }

  #addUse(held: Held, sign: 1 | -1): void {
    for (const providerId in held) {
      const amounts = held[providerId] ?? {};
      let used = this.#used.get(providerId);
      if (!used) this.#used.set(providerId, (used = new Map()));
      for (const resourceClass in amounts) {
        const sum = (used.get(resourceClass) ?? 0) + sign * (amounts[resourceClass] ?? 0);
        assert(sum >= 0, () => `use of ${resourceClass} of ${providerId} fell below zero`);
        used.set(resourceClass, sum);
      }
    }
  }
}

/** The committed and assumed forms of an allocation; it is not known yet which of them becomes final. */
export function formsOf({ kind, committed, assumed }: Layers): Forms {
  if (kind !== 'allocation') return noForms;
  const record = committed?.value;
  const stored = record?.kind === 'allocation' ? [record] : noForms;
  if (assumed.length === 0) return stored;
  const [only] = assumed;
  // Nearly always; and never `push`, which allocates spare capacity.
  if (assumed.length === 1 && stored === noForms) return only?.value?.kind === 'allocation' ? [only.value] : noForms;
  return [...stored, ...assumed.flatMap(({ value }) => (value?.kind === 'allocation' ? [value] : noForms))];
}

/** The hosts that any form is on, each once: nearly always one. */
export function hostsOf(before: Forms, after: Forms): readonly string[] {
  const [first] = after.length > 0 ? after : before;
  if (first && before.length + after.length === 1) return [first.host];
  const hosts: string[] = [];
  for (const { host } of before) if (!hosts.includes(host)) hosts.push(host);
  for (const { host } of after) if (!hosts.includes(host)) hosts.push(host);
  return hosts;
}

export function holdSame(a: Forms, b: Forms): boolean {
  const held = mostOf(a);
  const other = mostOf(b);
  return held === other || JSON.stringify(held) === JSON.stringify(other);
}

/**
 * The most of each class that an allocation may hold, in any of its forms. A claim therefore never counts on a release
 * that is not yet durable, and never overlooks what another control plane committed under a Plan of this process that
 * will fail: the claim's condition on the provider covers neither.
 */
function mostOf(forms: Forms): Held {
  const [first] = forms;
  if (!first) return nothingHeld;
  if (forms.length === 1 || forms.every(({ amounts }) => amounts === first.amounts)) return first.amounts;
  const held: Record<string, Record<string, number>> = {};
  for (const form of forms) {
    for (const [providerId, amounts] of Object.entries(form.amounts)) {
      const most = (held[providerId] ??= {});
      for (const [resourceClass, amount] of Object.entries(amounts))
        most[resourceClass] = Math.max(most[resourceClass] ?? 0, amount);
    }
  }
  return held;
}

function anyOn(forms: Forms, on: string): boolean {
  for (const { host } of forms) if (host === on) return true;
  return false;
}

function holdsPorts(forms: Forms, on: string): boolean {
  for (const { host, ports } of forms) if (host === on && ports !== undefined && ports.length > 0) return true;
  return false;
}

const noForms: Forms = [];
const noKeys: readonly string[] = [];
const nothingHeld: Held = {};
const nothingUsed: ReadonlyMap<string, number> = new Map();

const volumeAllocations = `${prefixOf('allocation')}${volumeDefinition.idPrefix}_`;
const isOfVolume = (key: string): boolean => key.startsWith(volumeAllocations);

function indexUnder(index: Map<string, Set<string>>, group: string, key: string, sign: 1 | -1): void {
  const members = index.get(group);
  if (sign > 0) {
    if (members) members.add(key);
    else index.set(group, new Set([key]));
  } else if (members?.delete(key) && members.size === 0) index.delete(group);
}
