// Quotas: the total that the instances, tasks and volumes of a project may ask for. They count from their creation until they
// are gone, placed or not. A create that exceeds the quota is refused; the order of placement follows fair shares, not
// quotas.

import { ApiError } from '../../api/errors.ts';
import { instancesClass } from '../../api/resource-class.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Task } from '../../api/resources/task.ts';
import type { Volume } from '../../api/resources/volume.ts';
import { requestOf } from '../scheduler/request.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import type { AnyRecord } from '../state/records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import { heldGiB } from '../state/volumes.ts';
import { passGate } from './limits.ts';

/**
 * The changes to include in the Plan that creates `instance`. Throws `QuotaExceeded`, or `Forbidden` for a priority
 * above the project's limit.
 */
export function chargeQuota(snapshot: Snapshot, instance: Instance): Change[] {
  const { project } = instance.metadata;
  const spec = snapshot.get('project', keys.project(project))?.value.spec;
  const priority = instance.spec.priority ?? 0;
  if (spec?.priorityMax !== undefined && priority > spec.priorityMax) {
    throw new ApiError('Forbidden', `project "${project}" may request priority ${spec.priorityMax} at most`, {
      field: 'spec.priority',
    });
  }
  if (spec?.quota === undefined) return [];
  return charge(snapshot, project, spec.quota, without(chargeOf(snapshot, instance), takenOver(snapshot, instance)));
}

/** The same for a task. */
export function chargeTask(snapshot: Snapshot, task: Task): Change[] {
  const { project } = task.metadata;
  const quota = snapshot.get('project', keys.project(project))?.value.spec.quota;
  return quota === undefined ? [] : charge(snapshot, project, quota, requestOf(snapshot, task).assigned);
}

/** An instance that takes over the room of a task needs only what is more. */
function takenOver(snapshot: Snapshot, { metadata: { project }, spec }: Instance): Amounts {
  const task = spec.placement.task && snapshot.get('task', keys.task(project, spec.placement.task))?.value;
  return task && counts(task) ? requestOf(snapshot, task).assigned : {};
}

function without(asked: Amounts, held: Amounts): Amounts {
  return Object.fromEntries(Object.entries(asked).map(([of, amount]) => [of, Math.max(0, amount - (held[of] ?? 0))]));
}

/** The same for a volume; `before`: its previous form when it only changes. */
export function chargeVolume(snapshot: Snapshot, volume: Volume, before?: Volume): Change[] {
  const { project } = volume.metadata;
  const quota = snapshot.get('project', keys.project(project))?.value.spec.quota;
  const more = heldGiB(volume.spec) - (before ? heldGiB(before.spec) : 0);
  return quota === undefined ? [] : charge(snapshot, project, quota, { DISK_GB: Math.max(0, more) });
}

/** What an instance gets more by a resize. */
export function chargeResize(
  snapshot: Snapshot,
  project: string,
  { before, after }: { readonly before: Amounts; readonly after: Amounts },
): Change[] {
  const quota = snapshot.get('project', keys.project(project))?.value.spec.quota;
  return quota === undefined ? [] : charge(snapshot, project, quota, without(after, before));
}

function charge(snapshot: Snapshot, project: string, quota: Amounts, asked: Amounts): Change[] {
  const used = chargesOf(snapshot).of(project);
  for (const [resourceClass, max] of Object.entries(quota)) {
    const sum = (used.get(resourceClass) ?? 0) + (asked[resourceClass] ?? 0);
    if (sum <= max || (asked[resourceClass] ?? 0) === 0) continue;
    throw new ApiError(
      'QuotaExceeded',
      `project "${project}" has ${used.get(resourceClass) ?? 0} of ${max} ${resourceClass}, and ${asked[resourceClass]} more are requested; remove some, or raise its quota`,
      { details: { resourceClass, quota: max, used: used.get(resourceClass) ?? 0, asked: asked[resourceClass] } },
    );
  }
  return [passGate(snapshot, gateOf(project))];
}

/**
 * The changes to include in the Plan that removes an instance or a volume, or ends a task, so that later charges depend on that Plan.
 */
export function dischargeQuota(snapshot: Snapshot, { metadata: { project } }: Charger): Change[] {
  const quota = snapshot.get('project', keys.project(project))?.value.spec.quota;
  return quota === undefined ? [] : [passGate(snapshot, gateOf(project))];
}

/** The current charges of a project by resource class: its instances and tasks, placed or not, its volumes, and INSTANCES. */
export function chargedTo(snapshot: Snapshot, project: string): Amounts {
  return Object.fromEntries([...chargesOf(snapshot).of(project)].filter(([, amount]) => amount > 0));
}

function gateOf(project: string): string {
  return `quota/${project}`;
}

function chargeOf(snapshot: Snapshot, instance: Instance): Amounts {
  return { ...requestOf(snapshot, instance).assigned, [instancesClass]: 1 };
}

const chargesOf = defineView((snapshot) => new Charges(snapshot));

/** Counts only projects that were queried. */
class Charges implements View {
  readonly #snapshot: Snapshot;
  readonly #sums = new Map<string, Map<string, number>>();
  /** By key: the charge, which a size may change later. */
  readonly #charged = new Map<string, Amounts>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  of(project: string): ReadonlyMap<string, number> {
    const known = this.#sums.get(project);
    if (known) return known;
    const sums = new Map<string, number>();
    this.#sums.set(project, sums);
    for (const kind of ['instance', 'task', 'volume'] as const)
      for (const { key, value } of this.#snapshot.list(kind))
        if (value.metadata.project === project && counts(value)) this.#charge(sums, key, value);
    return sums;
  }

  apply({ key, kind, before, after }: RecordChange): void {
    if (kind !== 'instance' && kind !== 'task' && kind !== 'volume') return;
    const charger = chargerOf(after) ?? chargerOf(before);
    const sums = charger && this.#sums.get(charger.metadata.project);
    if (!sums) return;
    const charged = this.#charged.get(key);
    // The charge of an instance is fixed even when its size changes; a volume can grow.
    const anew = after?.kind === 'volume' && charged !== undefined && charged['DISK_GB'] !== heldGiB(after.spec);
    const stays = after !== null && counts(charger);
    if (charged && (!stays || anew)) {
      add(sums, charged, -1);
      this.#charged.delete(key);
    }
    if (stays && (!charged || anew)) this.#charge(sums, key, charger);
  }

  #charge(sums: Map<string, number>, key: string, charger: Charger): void {
    const charge = this.#chargeOf(charger);
    this.#charged.set(key, charge);
    add(sums, charge, 1);
  }

  #chargeOf(charger: Charger): Amounts {
    switch (charger.kind) {
      case 'volume':
        return { DISK_GB: heldGiB(charger.spec) };
      case 'task':
        return requestOf(this.#snapshot, charger).assigned;
      case 'instance':
        return chargeOf(this.#snapshot, charger);
    }
  }
}

/** What counts towards a quota. */
type Charger = Instance | Task | Volume;

/** A task that has ended holds nothing, and its record is kept for a while. */
function counts(charger: Charger): boolean {
  return charger.kind !== 'task' || charger.status.phase === 'Pending' || charger.status.phase === 'Placed';
}

function chargerOf(record: AnyRecord | null): Charger | undefined {
  return record?.kind === 'instance' || record?.kind === 'task' || record?.kind === 'volume' ? record : undefined;
}

function add(sums: Map<string, number>, amounts: Amounts, sign: 1 | -1): void {
  for (const resourceClass in amounts)
    sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + sign * (amounts[resourceClass] ?? 0));
}
