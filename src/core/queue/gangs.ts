// Gangs: instances of one project that are placed together, all or none. Which instances form a gang, and whether it
// can be placed now.

import { isToRestart } from '../../api/instances/restart-rule.ts';
import { ApiError } from '../../api/errors.ts';
import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import type { Request } from '../scheduler/request.ts';
import { type Placed, schedule, summarize } from '../scheduler/schedule.ts';
import { defineView, type Entry, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import { compareAges } from './order.ts';

export interface GangMember {
  readonly instance: Entry<Instance>;
  readonly request: Request;
}

export type GangPlacement =
  | { readonly placed: true; readonly members: readonly (GangMember & { readonly placed: Placed })[] }
  | { readonly placed: false; readonly message: string };

/** Undefined for an instance without a gang. */
export function gangKeyOf({ metadata, spec }: Instance): string | undefined {
  return spec.gang === undefined ? undefined : `${metadata.project}/${spec.gang.name}`;
}

export const gangsOf = defineView((snapshot) => new Gangs(snapshot));

class Gangs implements View {
  readonly #snapshot: Snapshot;
  readonly #keysByGang = new Map<string, Set<string>>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    for (const { key, value } of snapshot.list('instance')) this.#add(key, value);
  }

  apply({ key, before, after }: RecordChange): void {
    const was = before?.kind === 'instance' ? gangKeyOf(before) : undefined;
    const is = after?.kind === 'instance' ? gangKeyOf(after) : undefined;
    // An instance can be deleted and created again under one name: when both share a commit, they arrive as one change.
    if (was !== undefined && was !== is) this.#delete(key, was);
    if (after?.kind === 'instance') this.#add(key, after);
  }

  /** The current and future members: not deleted, ended, or stopped before their first placement. The oldest first. */
  living(gang: string): Entry<Instance>[] {
    const living: Entry<Instance>[] = [];
    for (const key of this.#keysByGang.get(gang) ?? []) {
      const entry = this.#snapshot.get('instance', key);
      if (entry && isLiving(entry.value)) living.push(entry);
    }
    return living.sort((a, b) => compareAges(a.value.metadata, b.value.metadata));
  }

  #delete(key: string, gang: string): void {
    const members = this.#keysByGang.get(gang);
    if (members?.delete(key) && members.size === 0) this.#keysByGang.delete(gang);
  }

  #add(key: string, instance: Instance): void {
    const gang = gangKeyOf(instance);
    if (gang === undefined) return;
    const members = this.#keysByGang.get(gang);
    if (members) members.add(key);
    else this.#keysByGang.set(gang, new Set([key]));
  }
}

function isLiving(instance: Instance): boolean {
  const { metadata, spec, status } = instance;
  if (metadata.deletionRequestedAtMs !== undefined) return false;
  if (status.phase === 'Exited' || status.phase === 'Failed') return isToRestart(instance);
  return isToBeOn(spec) || status.host !== undefined;
}

/**
 * Throws `Conflict` for a member too many, and `InvalidRequest` for a size that differs from that of the other members.
 */
export function assertGang(snapshot: Snapshot, instance: Instance): void {
  const { gang } = instance.spec;
  if (gang === undefined) return;
  const living = gangsOf(snapshot).living(gangKeyOf(instance) ?? '');
  const other = living.find(({ value }) => value.spec.gang?.size !== gang.size)?.value;
  if (other) {
    throw new ApiError(
      'InvalidRequest',
      `gang "${gang.name}" is of ${other.spec.gang?.size}, as ${other.metadata.name} says; all of a gang must say the same`,
      { field: 'spec.gang.size' },
    );
  }
  if (living.length >= gang.size) {
    throw new ApiError('Conflict', `gang "${gang.name}" is complete: it has ${living.length} of ${gang.size}`, {
      field: 'spec.gang.name',
    });
  }
}

/** The message while members of a gang are missing. */
export function gangMissing({ name, size }: NonNullable<Instance['spec']['gang']>, there: number): string {
  return `GangIncomplete: ${there} of the ${size} of gang ${name} are there`;
}

/** Places all of them, the largest first, each with the earlier ones in place. */
export function placeGang(snapshot: Snapshot, name: string, members: readonly GangMember[]): GangPlacement {
  const fleet = fleetOf(snapshot);
  const bySize = largestFirst(members);
  return fleet.tentatively(() => {
    const found: (GangMember & { readonly placed: Placed })[] = [];
    for (const member of bySize) {
      const { request, instance } = member;
      const answer = schedule(snapshot, request);
      if (!answer.placed) {
        const who = instance.value.metadata.name;
        const message = `gang ${name}: ${found.length} of ${members.length} fit at once; then ${who}: ${summarize(answer)}`;
        return { placed: false, message };
      }
      const slot = fleet.slotOf(answer.host) ?? -1;
      fleet.hold(slot, answer.held, request.ports);
      fleet.groups.try(slot, request.belonging, 1);
      found.push({ ...member, placed: answer });
    }
    return { placed: true, members: found };
  });
}

/** The order in which the members are placed. */
export function largestFirst(members: readonly GangMember[]): GangMember[] {
  return members.toSorted((a, b) => compareSizes(b.request, a.request));
}

function compareSizes({ assigned: a }: Request, { assigned: b }: Request): number {
  return (a['VCPU'] ?? 0) - (b['VCPU'] ?? 0) || (a['MEMORY_MB'] ?? 0) - (b['MEMORY_MB'] ?? 0);
}
