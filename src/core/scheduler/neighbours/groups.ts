// Groups: where the instances are that a request wants to be near or away from. Counted by host, and by rack or zone on
// demand. A group that is never queried costs a set of keys; counting starts at the first query. Updated on every
// change of an instance or a host; a test compares the counts with a recount.

import { equalJson } from '../../../base/equal-json.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import {
  type Belonging,
  belongingOf,
  groupTag,
  isMember,
  placeOf,
  type Repulsion,
  sameSelector,
  type Selector,
  tagOf,
} from './belonging.ts';
import type { Slot } from '../engine/slot.ts';
import type { ChangeLog } from '../engine/change-log.ts';
import { TagIndex } from './tag-index.ts';
import type { Topologies } from './topology.ts';

/** How many instances of one kind are where. */
export interface Count {
  readonly bySlot: Map<Slot, number>;
  total: number;
  /** By topology key, then domain. Built on demand. */
  readonly byDomain: Map<string, number[]>;
}

/** The members of one group that are on hosts. */
export interface Members extends Count {
  readonly selector: Selector;
  usedAt: number;
}

/** Instances on hosts that repel the same others. */
export interface Repellers extends Count, Repulsion {}

interface Places {
  readonly topologies: Topologies;
  readonly log: ChangeLog;
  slotOf(host: string): Slot | undefined;
}

/**
 * When more groups are counted, the least recently queried half is dropped; a dropped group is counted again at its
 * next query.
 */
const countedMax = 16_384;

export class Groups {
  readonly #snapshot: Snapshot;
  readonly #places: Places;
  /**
   * Keys of all instances with a label or in a placement group. A single key is stored without a set: many labels
   * belong to one instance only.
   */
  readonly #keys = new TagIndex<string | Set<string>>();
  readonly #counted = new Set<Members>();
  /** The counted groups, by a tag that all of their members have. */
  readonly #countedByTag = new TagIndex<Members[]>();
  readonly #repellers = new Set<Repellers>();
  readonly #repellersByTag = new TagIndex<Repellers[]>();
  /** Instances bound to unknown hosts, by host. */
  readonly #strays = new Map<string, Set<string>>();
  /** Removed hosts; instances that are still bound to them are not recorded. */
  readonly #left = new Set<string>();
  readonly #tried: { readonly belonging: Belonging; readonly slot: Slot; readonly sign: 1 | -1 }[] = [];
  #uses = 0;

  constructor(snapshot: Snapshot, places: Places) {
    this.#snapshot = snapshot;
    this.#places = places;
  }

  /** The members of a group, counted from now on. */
  of(selector: Selector): Members {
    const tag = tagOf(selector);
    if (!tag) return { selector, bySlot: new Map(), total: 0, byDomain: new Map(), usedAt: 0 };
    const { project } = selector;
    let members: Members | undefined;
    for (const other of this.#countedByTag.get(project, tag.key, tag.value) ?? noMembers)
      if (sameSelector(other.selector, selector)) members = other;
    if (!members) {
      members = { selector, bySlot: new Map(), total: 0, byDomain: new Map(), usedAt: 0 };
      if (this.#counted.size >= countedMax) this.#forgetHalf();
      this.#counted.add(members);
      this.#countedByTag.at(project, tag.key, tag.value, () => []).push(members);
      for (const { value } of this.instancesOf(selector)) {
        const slot = this.#slotOf(value);
        if (slot !== undefined) this.#move(members, slot, 1);
      }
      for (const { belonging, slot, sign } of this.#tried)
        if (isMember(selector, belonging)) this.#move(members, slot, sign);
    }
    members.usedAt = ++this.#uses;
    return members;
  }

  /** Placed instances that repel an instance like this. */
  repellersOf(belonging: Belonging): readonly Repellers[] {
    if (this.#repellers.size === 0) return noRepellers;
    let found: Repellers[] | undefined;
    const look = (key: string, value: string): void => {
      for (const repellers of this.#repellersByTag.get(belonging.project, key, value) ?? noRepellers)
        if (isMember(repellers.members, belonging)) (found ??= []).push(repellers);
    };
    const { labels, placementGroup } = belonging;
    for (const key in labels) look(key, labels[key] ?? '');
    if (placementGroup !== undefined) look(groupTag, placementGroup);
    return found ?? noRepellers;
  }

  /** Number of members in each domain of a topology; trailing empty domains may be missing. */
  byDomain(count: Count, topologyKey: string): readonly number[] {
    let counts = count.byDomain.get(topologyKey);
    if (!counts) {
      const { domainOf, values } = this.#places.topologies.of(topologyKey);
      counts = values.map(() => 0);
      for (const [slot, here] of count.bySlot) {
        const domain = domainOf[slot] ?? -1;
        if (domain >= 0) counts[domain] = (counts[domain] ?? 0) + here;
      }
      count.byDomain.set(topologyKey, counts);
    }
    return counts;
  }

  /** All instances that a selector selects, placed or not. Iterates over those with the rarest of its labels. */
  *instancesOf(selector: Selector): Iterable<{ readonly key: string; readonly value: Instance }> {
    let rarest: ReadonlySet<string> | undefined;
    const consider = (key: string, value: string): void => {
      const known = this.#keys.get(selector.project, key, value) ?? noKeys;
      const keys = typeof known === 'string' ? new Set([known]) : known;
      if (!rarest || keys.size < rarest.size) rarest = keys;
    };
    for (const key in selector.labels) consider(key, selector.labels[key] ?? '');
    if (selector.placementGroup !== undefined) consider(groupTag, selector.placementGroup);
    for (const key of rarest ?? noKeys) {
      const instance = this.#snapshot.get('instance', key)?.value;
      if (instance && isMember(selector, belongingOf(instance))) yield { key, value: instance };
    }
  }

  // Updates.

  /** Adds all existing instances. */
  load(): void {
    for (const { key, value } of this.#snapshot.list('instance')) this.#come(key, value);
  }

  apply(key: string, before: Instance | null, after: Instance | null): void {
    if (before && after && sameTies(before, after)) {
      if (placeOf(before) === placeOf(after)) return;
      this.#leave(key, before, true);
      this.#come(key, after, true);
      return;
    }
    if (before) this.#leave(key, before);
    if (after) this.#come(key, after);
  }

  /** Instances may have been bound to the host before it was known. */
  hostCame(host: string, slot: Slot): void {
    if (this.#left.delete(host)) return this.#recount();
    const strays = this.#strays.get(host);
    if (!strays) return;
    this.#strays.delete(host);
    for (const key of strays) {
      const instance = this.#snapshot.get('instance', key)?.value;
      if (instance) this.#add(belongingOf(instance), slot, 1);
    }
  }

  hostGone(host: string, slot: Slot): void {
    this.#left.add(host);
    for (const members of this.#counted) this.#clear(members, slot);
    for (const repellers of this.#repellers) {
      this.#clear(repellers, slot);
      this.#dropIfNone(repellers);
    }
  }

  /** The host moved to another rack or zone: the affected domains are counted again. */
  hostMoved(slot: Slot): void {
    for (const members of this.#counted) forgetDomains(members, slot);
    for (const repellers of this.#repellers) forgetDomains(repellers, slot);
  }

  // Trials.

  /** In a trial of the fleet: adds or removes one instance there. */
  try(slot: Slot, belonging: Belonging, sign: 1 | -1): void {
    this.#tried.push({ belonging, slot, sign });
    this.#add(belonging, slot, sign);
  }

  endTrial(): void {
    for (const { belonging, slot, sign } of this.#tried.splice(0).reverse())
      this.#add(belonging, slot, sign > 0 ? -1 : 1);
  }

  // Below: one instance, one count.

  /** `tagged`: its labels and its group are already indexed. */
  #come(key: string, instance: Instance, tagged = false): void {
    const belonging = belongingOf(instance);
    if (!tagged) this.#tag(key, belonging);
    const host = placeOf(instance);
    if (host === undefined) return;
    const slot = this.#places.slotOf(host);
    if (slot !== undefined) return this.#add(belonging, slot, 1);
    const strays = this.#strays.get(host);
    if (strays) strays.add(key);
    else this.#strays.set(host, new Set([key]));
  }

  #leave(key: string, instance: Instance, tagged = false): void {
    const belonging = belongingOf(instance);
    if (!tagged) this.#untag(key, belonging);
    const host = placeOf(instance);
    if (host === undefined) return;
    const slot = this.#places.slotOf(host);
    if (slot !== undefined) return this.#add(belonging, slot, -1);
    const strays = this.#strays.get(host);
    if (strays?.delete(key) && strays.size === 0) this.#strays.delete(host);
  }

  #tag(key: string, { project, labels, placementGroup }: Belonging): void {
    const note = (label: string, value: string): void => {
      const known = this.#keys.get(project, label, value);
      if (known === undefined) this.#keys.set(project, label, value, key);
      else if (typeof known !== 'string') known.add(key);
      else if (known !== key) this.#keys.set(project, label, value, new Set([known, key]));
    };
    for (const label in labels) note(label, labels[label] ?? '');
    if (placementGroup !== undefined) note(groupTag, placementGroup);
  }

  #untag(key: string, { project, labels, placementGroup }: Belonging): void {
    const forget = (label: string, value: string): void => {
      const known = this.#keys.get(project, label, value);
      if (known === key) this.#keys.delete(project, label, value);
      else if (known instanceof Set && known.delete(key) && known.size === 0) this.#keys.delete(project, label, value);
    };
    for (const label in labels) forget(label, labels[label] ?? '');
    if (placementGroup !== undefined) forget(groupTag, placementGroup);
  }

  #add(belonging: Belonging, slot: Slot, sign: 1 | -1): void {
    const { project, labels, placementGroup, repels } = belonging;
    if (this.#counted.size > 0) {
      for (const label in labels)
        this.#addTo(this.#countedByTag.get(project, label, labels[label] ?? ''), belonging, slot, sign);
      if (placementGroup !== undefined)
        this.#addTo(this.#countedByTag.get(project, groupTag, placementGroup), belonging, slot, sign);
    }
    for (const repulsion of repels ?? noRepulsions) this.#repel(repulsion, slot, sign);
  }

  #addTo(all: readonly Members[] | undefined, belonging: Belonging, slot: Slot, sign: 1 | -1): void {
    if (!all) return;
    for (const members of all) if (isMember(members.selector, belonging)) this.#move(members, slot, sign);
  }

  #repel({ members, by }: Repulsion, slot: Slot, sign: 1 | -1): void {
    const tag = tagOf(members);
    if (!tag) return;
    const all = this.#repellersByTag.at(members.project, tag.key, tag.value, () => []);
    let repellers = all.find((each) => each.by === by && sameSelector(each.members, members));
    if (!repellers) {
      repellers = { members, by, bySlot: new Map(), total: 0, byDomain: new Map() };
      all.push(repellers);
      this.#repellers.add(repellers);
    }
    this.#move(repellers, slot, sign);
    this.#dropIfNone(repellers);
  }

  /** The total is not enough: in a trial an instance may be taken away where none was counted. */
  #dropIfNone(repellers: Repellers): void {
    if (repellers.bySlot.size > 0) return;
    this.#repellers.delete(repellers);
    drop(this.#repellersByTag, repellers.members, repellers);
  }

  #clear(count: Count, slot: Slot): void {
    const here = count.bySlot.get(slot);
    if (here !== undefined) this.#move(count, slot, -here);
  }

  #move(count: Count, slot: Slot, by: number): void {
    const here = (count.bySlot.get(slot) ?? 0) + by;
    if (here === 0) count.bySlot.delete(slot);
    else count.bySlot.set(slot, here);
    count.total += by;
    this.#places.log.push(slot); // for caches of verdicts that depend on it
    for (const [topologyKey, counts] of count.byDomain) {
      const domain = this.#places.topologies.of(topologyKey).domainOf[slot] ?? -1;
      if (domain < 0) continue;
      while (counts.length <= domain) counts.push(0);
      counts[domain] = (counts[domain] ?? 0) + by;
    }
  }

  #slotOf(instance: Instance): Slot | undefined {
    const host = placeOf(instance);
    return host === undefined ? undefined : this.#places.slotOf(host);
  }

  #forgetHalf(): void {
    const uses = [...this.#counted].map(({ usedAt }) => usedAt).sort((a, b) => a - b);
    const last = uses[countedMax / 2] ?? 0;
    for (const members of this.#counted) {
      if (members.usedAt > last) continue;
      this.#counted.delete(members);
      drop(this.#countedByTag, members.selector, members);
    }
  }

  /** Counts everything again from the records: a host returned to which instances may still be bound. */
  #recount(): void {
    this.#counted.clear();
    this.#countedByTag.clear();
    this.#repellers.clear();
    this.#repellersByTag.clear();
    this.#strays.clear();
    for (const { key, value } of this.#snapshot.list('instance')) this.#come(key, value, true);
  }
}

function forgetDomains({ bySlot, byDomain }: Count, slot: Slot): void {
  if (byDomain.size > 0 && bySlot.has(slot)) byDomain.clear();
}

const noMembers: readonly Members[] = [];
const noRepellers: readonly Repellers[] = [];
const noRepulsions: readonly Repulsion[] = [];
const noKeys: ReadonlySet<string> = new Set();

/** Whether both have the same labels, group and rules; these change rarely, and never in place. */
function sameTies(a: Instance, b: Instance): boolean {
  return equalJson(a.metadata.labels, b.metadata.labels) && equalJson(a.spec.placement, b.spec.placement);
}

function drop<T>(index: TagIndex<T[]>, selector: Selector, one: T): void {
  const tag = tagOf(selector);
  const all = tag && index.get(selector.project, tag.key, tag.value);
  if (!tag || !all) return;
  const at = all.indexOf(one);
  if (at >= 0) all.splice(at, 1);
  if (all.length === 0) index.delete(selector.project, tag.key, tag.value);
}
