// Invariant 4, of /schedule: one request makes one task, however often it is sent; what was answered is committed. A task is placed once, on
// one host, and ends once: when it is released or its time is over.

import type { Task } from '../../../api/resources/task.ts';
import type { Commit } from '../../history.ts';
import type { Checker, Facts } from '../checker.ts';

export const schedulesChecker = (facts: Facts): Checker => new SchedulesChecker(facts);

const order = { Pending: 0, Placed: 1, Failed: 2, Expired: 2 } as const;

class SchedulesChecker implements Checker {
  readonly invariant = 4;
  readonly #facts: Facts;
  /** Ids, by name: it is made of the key of the request. */
  readonly #made = new Map<string, string>();
  readonly #ids = new Set<string>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const { before, after } of events) {
      const was = scheduled(before);
      const is = scheduled(after);
      const fault = (is && this.#faultOfMade(is)) ?? (was && faultOfChange(was, is));
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state, intents, servers } = this.#facts;
    for (const [id, { key }] of intents.schedules)
      if (!this.#ids.has(id)) yield `request ${key} was answered with ${id}, and no commit made it`;
    const nowMs = Math.min(...servers().map(({ wallMs }) => wallMs?.() ?? 0));
    for (const { metadata, spec, status } of state.list('task')) {
      const { id, name } = metadata;
      if (!this.#ids.has(id) || order[status.phase] === 2) continue;
      if (intents.schedules.get(id)?.released) yield `task ${name} (${id}) was released, and is ${status.phase}`;
      if (status.phase === 'Pending' && spec.whenFull === 'fail') yield `task ${name} (${id}) may not wait, and does`;
      if (status.phase === 'Placed' && (status.heldUntilMs ?? 0) < nowMs)
        yield `the time of task ${name} (${id}) is over, and it holds its room`;
    }
  }

  #faultOfMade({ metadata: { id, name } }: Task): string | undefined {
    const known = this.#made.get(name);
    this.#made.set(name, id);
    this.#ids.add(id);
    return known === undefined || known === id ? undefined : `one request has made the tasks ${known} and ${id}`;
  }
}

function scheduled(record: { readonly kind: string } | null): Task | undefined {
  if (record?.kind !== 'task') return undefined;
  const task = record as Task; // the kind tells
  return task.metadata.name.startsWith('schedule-') ? task : undefined;
}

function faultOfChange({ metadata: { id, name }, status: was }: Task, is: Task | undefined): string | undefined {
  const what = `task ${name} (${id})`;
  if (is === undefined) return order[was.phase] === 2 ? undefined : `${what} was removed while it was ${was.phase}`;
  const { status } = is;
  if (order[status.phase] < order[was.phase]) return `${what} was ${was.phase}, and is ${status.phase}`;
  if (order[was.phase] === 2 && status.phase !== was.phase)
    return `${what} has ended twice: ${was.phase}, ${status.phase}`;
  if (was.host !== undefined && was.host !== status.host) return `${what} has moved from ${was.host} to ${status.host}`;
  return undefined;
}
