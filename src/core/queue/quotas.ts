// Quotas: what the instances of a project may ask for together. They count from their creation until they are gone, placed or not. A
// create that goes beyond is refused; fair shares, not quotas, say who is first.

import { ApiError } from '../../api/errors.ts';
import { instancesClass } from '../../api/resource-class.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import { requestOf } from '../scheduler/request.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';
import { passGate } from './limits.ts';

/** What belongs into the Plan that makes `instance`. Throws `QuotaExceeded`, or `Forbidden` for a priority above the project's. */
export function chargeQuota(snapshot: Snapshot, instance: Instance): Change[] {
  const { project } = instance.metadata;
  const spec = snapshot.get('project', keys.project(project))?.value.spec;
  const priority = instance.spec.priority ?? 0;
  if (spec?.priorityMax !== undefined && priority > spec.priorityMax) {
    throw new ApiError('Forbidden', `project "${project}" may ask for priority ${spec.priorityMax} at most`, {
      field: 'spec.priority',
    });
  }
  if (spec?.quota === undefined) return [];
  const used = chargesOf(snapshot).of(project);
  const asked = chargeOf(snapshot, instance);
  for (const [resourceClass, max] of Object.entries(spec.quota)) {
    const sum = (used.get(resourceClass) ?? 0) + (asked[resourceClass] ?? 0);
    if (sum <= max || (asked[resourceClass] ?? 0) === 0) continue;
    throw new ApiError(
      'QuotaExceeded',
      `project "${project}" has ${used.get(resourceClass) ?? 0} of ${max} ${resourceClass}, and ${asked[resourceClass]} more are asked for; remove some, or have its quota raised`,
      { details: { resourceClass, quota: max, used: used.get(resourceClass) ?? 0, asked: asked[resourceClass] } },
    );
  }
  return [passGate(snapshot, gateOf(project))];
}

/** What belongs into the Plan that removes an instance: whoever is charged after it rests on that Plan. */
export function dischargeQuota(snapshot: Snapshot, { metadata: { project } }: Instance): Change[] {
  const quota = snapshot.get('project', keys.project(project))?.value.spec.quota;
  return quota === undefined ? [] : [passGate(snapshot, gateOf(project))];
}

/** What the quota of a project counts now, by resource class: its instances placed or not, and INSTANCES. */
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

/** Of projects that were asked for; the others cost nothing. */
class Charges implements View {
  readonly #snapshot: Snapshot;
  readonly #sums = new Map<string, Map<string, number>>();
  /** By key: what was charged, which a size may change later. */
  readonly #charged = new Map<string, Amounts>();

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
  }

  of(project: string): ReadonlyMap<string, number> {
    const known = this.#sums.get(project);
    if (known) return known;
    const sums = new Map<string, number>();
    this.#sums.set(project, sums);
    for (const { key, value } of this.#snapshot.list('instance'))
      if (value.metadata.project === project) this.#charge(sums, key, value);
    return sums;
  }

  apply({ key, kind, before, after }: RecordChange): void {
    if (kind !== 'instance') return;
    const instance = after?.kind === 'instance' ? after : before?.kind === 'instance' ? before : undefined;
    const sums = instance && this.#sums.get(instance.metadata.project);
    if (!sums) return;
    const charged = this.#charged.get(key);
    if (after && !charged) this.#charge(sums, key, instance);
    else if (!after && charged) {
      add(sums, charged, -1);
      this.#charged.delete(key);
    }
  }

  #charge(sums: Map<string, number>, key: string, instance: Instance): void {
    const charge = chargeOf(this.#snapshot, instance);
    this.#charged.set(key, charge);
    add(sums, charge, 1);
  }
}

function add(sums: Map<string, number>, amounts: Amounts, sign: 1 | -1): void {
  for (const resourceClass in amounts)
    sums.set(resourceClass, (sums.get(resourceClass) ?? 0) + sign * (amounts[resourceClass] ?? 0));
}
