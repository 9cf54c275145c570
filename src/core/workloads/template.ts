// When two templates are one, and which copies already have the present template. A template is stored with its defaults filled in: a
// default that a later release adds must start no update.

import { fillDefaults } from '../../api/defaults.ts';
import { type Workload, WorkloadTemplate } from '../../api/resources/workload.ts';
import { equalJson } from '../../base/equal-json.ts';
import { instanceStatusChange } from '../state/instance-change.ts';
import { keys } from '../state/keys.ts';
import type { Change } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { type Copy, copiesOf } from './copy.ts';

export function sameTemplate(a: WorkloadTemplate, b: WorkloadTemplate): boolean {
  return equalJson(a, b) || equalJson(withDefaults(a), withDefaults(b));
}

function withDefaults(template: WorkloadTemplate): unknown {
  return fillDefaults(WorkloadTemplate, structuredClone(template));
}

/** Copies of a former revision with the present template count as copies of the present revision, as after an undo. */
export function presentCopiesOf(snapshot: Snapshot, workload: Workload): readonly Copy[] {
  const copies = copiesOf(snapshot, workload.metadata.id);
  const { revision } = workload.status;
  const same = new Map<number, boolean>();
  for (const copy of copies)
    if (isOther(copy, revision) && !same.has(copy.revision))
      same.set(copy.revision, hasPresentTemplate(snapshot, workload, copy.revision));
  if (same.size === 0) return copies;
  return copies.map((copy) =>
    same.get(copy.revision) && isOther(copy, revision) ? { ...copy, revision, formerRevision: copy.revision } : copy,
  );
}

function isOther(copy: Copy, revision: number): boolean {
  return copy.revision !== revision && !copy.evicted;
}

function hasPresentTemplate(snapshot: Snapshot, { metadata, spec }: Workload, number: number): boolean {
  const { project, name, id } = metadata;
  const former = snapshot.get('workloadRevision', keys.workloadRevision(project, name, number))?.value;
  return former?.workloadId === id && sameTemplate(former.template, spec.template);
}

/** Writes the present revision into the copies that have its template, at most `countMax`. */
export function adopted(snapshot: Snapshot, copies: readonly Copy[], countMax: number): readonly Change[] {
  return copies
    .filter(({ formerRevision, leaving }) => formerRevision !== undefined && !leaving)
    .slice(0, countMax)
    .flatMap(({ key, revision }) => {
      const entry = snapshot.get('instance', key);
      const owner = entry?.value.status.workload;
      if (!entry || !owner) return [];
      return [instanceStatusChange(entry, { ...entry.value.status, workload: { ...owner, revision } })];
    });
}
