// What the instances of each project claim together, kept as they change: a look at it costs the same for any number of instances.

import type { ProjectTotal } from '../../api/usage.ts';
import type { AnyRecord } from '../state/records.ts';
import { defineView, type RecordChange, type Snapshot, type View } from '../state/snapshot.ts';

const totalsOf = defineView((snapshot) => new ProjectTotals(snapshot));

export function projectTotals(snapshot: Snapshot): Iterable<ProjectTotal> {
  return totalsOf(snapshot).all();
}

type Sums = { -readonly [Field in keyof Omit<ProjectTotal, 'project'>]: number };

class ProjectTotals implements View {
  readonly #byProject = new Map<string, Sums>();

  constructor(snapshot: Snapshot) {
    for (const { value } of snapshot.list('instance')) this.#add(value, 1);
  }

  *all(): Iterable<ProjectTotal> {
    for (const [project, sums] of this.#byProject) yield { project, ...sums };
  }

  apply({ kind, before, after, onlyHeld }: RecordChange): void {
    if (kind !== 'instance' || onlyHeld) return;
    this.#add(before, -1);
    this.#add(after, 1);
  }

  #add(record: AnyRecord | null, sign: 1 | -1): void {
    if (record?.kind !== 'instance') return;
    const { project } = record.metadata;
    const { phase, assigned = {} } = record.status;
    const sums = this.#byProject.get(project) ?? { ...nothing };
    sums.instances += sign;
    sums.running += sign * Number(phase === 'Running');
    sums.pending += sign * Number(phase === 'Pending');
    sums.cpus = exact(sums.cpus + sign * (assigned['VCPU'] ?? 0));
    sums.memoryMiB += sign * (assigned['MEMORY_MB'] ?? 0);
    sums.diskGiB += sign * (assigned['DISK_GB'] ?? 0);
    if (sums.instances > 0) this.#byProject.set(project, sums);
    else this.#byProject.delete(project);
  }
}

const nothing: Readonly<Sums> = { instances: 0, running: 0, pending: 0, cpus: 0, memoryMiB: 0, diskGiB: 0 };

/** Shares of CPUs may be fractions, whose sums would drift. */
function exact(amount: number): number {
  return Math.round(amount * 1_000) / 1_000;
}
