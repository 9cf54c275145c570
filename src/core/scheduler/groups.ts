// Groups: where the instances are that a request wants to be near, or far from. Counted by host, and by rack or zone when someone asks.
// A group that nobody asks for costs a set of keys; counting begins with the first question.

import type { Instance } from '../../api/resources/instance.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import type { Snapshot } from '../state/snapshot.ts';
import type { Slot } from './slot.ts';
import type { Topologies } from './topology.ts';

/** Which instances of a project are meant: those that bear all the labels, or those of a placement group. */
export interface Selector {
  readonly project: string;
  readonly labels: Labels;
  readonly placementGroup?: string;
}

/** What makes an instance a member of groups. */
export interface Belonging {
  readonly project: string;
  readonly labels: Labels;
  readonly placementGroup?: string | undefined;
}

/** The members of one group that are on hosts. */
export interface Members {
  readonly selector: Selector;
  readonly bySlot: Map<Slot, number>;
  total: number;
  /** By topology key, then domain. Made when asked for. */
  readonly byDomain: Map<string, number[]>;
}

interface Places {
  readonly topologies: Topologies;
  slotOf(host: string): Slot | undefined;
}

export class Groups {
  readonly #snapshot: Snapshot;
  readonly #places: Places;
  /** Keys of all instances with a label, or of a placement group. */
  readonly #keysByTag = new Map<string, Set<string>>();
  readonly #counted = new Map<string, Members>();
  /** The counted groups, by the first of their tags. */
  readonly #countedByTag = new Map<string, Members[]>();
  readonly #tried: { readonly members: Members; readonly slot: Slot; readonly sign: 1 | -1 }[] = [];

  constructor(snapshot: Snapshot, places: Places) {
    this.#snapshot = snapshot;
    this.#places = places;
    for (const { key, value } of snapshot.list('instance')) this.#tag(key, belongingOf(value), 1);
  }

  /** The members of a group, counted from now on. */
  of(selector: Selector): Members {
    const tags = tagsOf(selector);
    const id = tags.join('&');
    let members = this.#counted.get(id);
    if (!members) {
      members = { selector, bySlot: new Map(), total: 0, byDomain: new Map() };
      this.#counted.set(id, members);
      const [first = ''] = tags;
      const sharing = this.#countedByTag.get(first);
      if (sharing) sharing.push(members);
      else this.#countedByTag.set(first, [members]);
      for (const key of this.#rarest(tags)) this.#count(members, this.#snapshot.get('instance', key)?.value);
    }
    return members;
  }

  /** How many members are in each domain of a topology. */
  byDomain(members: Members, topologyKey: string): readonly number[] {
    let counts = members.byDomain.get(topologyKey);
    if (!counts) {
      const { domainOf, values } = this.#places.topologies.of(topologyKey);
      counts = values.map(() => 0);
      for (const [slot, count] of members.bySlot) {
        const domain = domainOf[slot] ?? -1;
        if (domain >= 0) counts[domain] = (counts[domain] ?? 0) + count;
      }
      members.byDomain.set(topologyKey, counts);
    }
    return counts;
  }

  apply(before: Instance | null, after: Instance | null): void {
    const one = after ?? before;
    if (!one) return;
    const key = `instances/${one.metadata.project}/${one.metadata.name}`;
    if (!before || !after || before.metadata.labels !== after.metadata.labels) {
      if (before) this.#tag(key, belongingOf(before), -1);
      if (after) this.#tag(key, belongingOf(after), 1);
    }
    if (this.#counted.size === 0) return;
    if (before && after && before.metadata.labels === after.metadata.labels && placeOf(before) === placeOf(after))
      return;
    if (before) this.#add(belongingOf(before), placeOf(before), -1);
    if (after) this.#add(belongingOf(after), placeOf(after), 1);
  }

  /** Within a trial of the fleet: as if an instance were (or were no more) there. */
  try(slot: Slot, belonging: Belonging, sign: 1 | -1): void {
    for (const members of this.#countedFor(belonging)) {
      this.#move(members, slot, sign);
      this.#tried.push({ members, slot, sign });
    }
  }

  endTrial(): void {
    for (const { members, slot, sign } of this.#tried.splice(0)) this.#move(members, slot, sign > 0 ? -1 : 1);
  }

  /** Instances may have been bound to it before it was known here. */
  hostCame(host: string, slot: Slot): void {
    if (this.#counted.size === 0) return;
    for (const { value: allocation } of this.#snapshot.allocationsOnHost(host)) {
      const instance = this.#snapshot.instanceById(allocation.consumer.id)?.value;
      if (instance && placeOf(instance) === host)
        for (const members of this.#countedFor(belongingOf(instance))) this.#move(members, slot, 1);
    }
  }

  hostGone(slot: Slot): void {
    for (const members of this.#counted.values()) {
      const count = members.bySlot.get(slot);
      if (count !== undefined) this.#move(members, slot, -1, count);
    }
  }

  /** A host is in another rack or zone: domains are counted anew. */
  hostMoved(): void {
    for (const members of this.#counted.values()) members.byDomain.clear();
  }

  #tag(key: string, belonging: Belonging, sign: 1 | -1): void {
    for (const tag of tagsOf(belonging)) {
      const keys = this.#keysByTag.get(tag);
      if (sign > 0) {
        if (keys) keys.add(key);
        else this.#keysByTag.set(tag, new Set([key]));
      } else if (keys?.delete(key) && keys.size === 0) this.#keysByTag.delete(tag);
    }
  }

  #rarest(tags: readonly string[]): Iterable<string> {
    let best: ReadonlySet<string> | undefined;
    for (const tag of tags) {
      const keys = this.#keysByTag.get(tag) ?? nothing;
      if (!best || keys.size < best.size) best = keys;
    }
    return best ?? nothing;
  }

  #count(members: Members, instance: Instance | undefined): void {
    if (!instance || !isMember(members.selector, belongingOf(instance))) return;
    const host = placeOf(instance);
    const slot = host === undefined ? undefined : this.#places.slotOf(host);
    if (slot !== undefined) this.#move(members, slot, 1);
  }

  #add(belonging: Belonging, host: string | undefined, sign: 1 | -1): void {
    const slot = host === undefined ? undefined : this.#places.slotOf(host);
    if (slot === undefined) return;
    for (const members of this.#countedFor(belonging)) this.#move(members, slot, sign);
  }

  *#countedFor(belonging: Belonging): Iterable<Members> {
    for (const tag of tagsOf(belonging)) {
      for (const members of this.#countedByTag.get(tag) ?? []) {
        if (isMember(members.selector, belonging)) yield members;
      }
    }
  }

  #move(members: Members, slot: Slot, sign: 1 | -1, times = 1): void {
    const count = (members.bySlot.get(slot) ?? 0) + sign * times;
    if (count === 0) members.bySlot.delete(slot);
    else members.bySlot.set(slot, count);
    members.total += sign * times;
    for (const [topologyKey, counts] of members.byDomain) {
      const domain = this.#places.topologies.of(topologyKey).domainOf[slot] ?? -1;
      if (domain >= 0) counts[domain] = (counts[domain] ?? 0) + sign * times;
    }
  }
}

const nothing: ReadonlySet<string> = new Set();

export function belongingOf({
  metadata,
  spec,
}: {
  readonly metadata: Pick<Instance['metadata'], 'project' | 'labels'>;
  readonly spec: Pick<Instance['spec'], 'placement'>;
}): Belonging {
  return { project: metadata.project, labels: metadata.labels, placementGroup: spec.placement.group };
}

/** The host that an instance counts on: where it runs, will run, or stands still. Not where it failed or ended. */
export function placeOf({ status }: Instance): string | undefined {
  return status.phase === 'Failed' || status.phase === 'Exited' ? undefined : status.host;
}

/** One for each label, in order, and one for the placement group. */
function tagsOf({ project, labels, placementGroup }: Belonging): string[] {
  const tags: string[] = [];
  for (const key in labels) tags.push(`${project}|${key}=${labels[key]}`);
  if (tags.length > 1) tags.sort();
  if (placementGroup !== undefined) tags.push(`${project}|@${placementGroup}`);
  return tags;
}

function isMember(selector: Selector, belonging: Belonging): boolean {
  if (selector.project !== belonging.project) return false;
  if (selector.placementGroup !== undefined && selector.placementGroup !== belonging.placementGroup) return false;
  for (const key in selector.labels) {
    if (!Object.hasOwn(belonging.labels, key) || belonging.labels[key] !== selector.labels[key]) return false;
  }
  return true;
}
