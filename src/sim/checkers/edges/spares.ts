// Invariant 4, of spares: a machine is there when it is said to be made, and gone when it is said to be released; meanwhile its room is held.
// At rest every spare has come to an end, is held, or waits for a person.

import type { Spare, SparePhase } from '../../../api/resources/spare.ts';
import type { Task } from '../../../api/resources/task.ts';
import type { Commit, RecordEvent } from '../../history.ts';
import type { Checker, Facts, MachineFacts } from '../checker.ts';

export const sparesChecker = (facts: Facts): Checker =>
  facts.machines === undefined ? { invariant: 4 } : new SparesChecker(facts, facts.machines);

const next: Readonly<Record<SparePhase, readonly SparePhase[]>> = {
  Pending: ['Provisioning', 'Releasing', 'Released', 'Failed'],
  Provisioning: ['Checking', 'Ready', 'Releasing', 'Released', 'Failed', 'Unknown'],
  Checking: ['Ready', 'Releasing', 'Released'],
  Ready: ['Releasing', 'Released'],
  Releasing: ['Released', 'Failed', 'Unknown'],
  Released: [],
  Failed: [],
  Unknown: ['Releasing', 'Released'],
};

class SparesChecker implements Checker {
  readonly invariant = 4;
  readonly #facts: Facts;
  readonly #machines: MachineFacts;

  constructor(facts: Facts, machines: MachineFacts) {
    this.#facts = facts;
    this.#machines = machines;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const event of events) {
      const fault = this.#faultOf(event);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state, servers } = this.#facts;
    const nowMs = Math.min(...servers().map(({ wallMs }) => wallMs?.() ?? 0));
    const held = new Set<string>();
    for (const { metadata, status } of state.list('spare')) {
      const { id, name } = metadata;
      if (next[status.phase].length > 0) held.add(id);
      const isHeld = status.phase === 'Ready' && (status.heldUntilMs ?? 0) >= nowMs;
      if (next[status.phase].length > 0 && !isHeld && status.phase !== 'Unknown')
        yield `spare ${name} (${id}) is ${status.phase}`;
    }
    for (const id of this.#machines.owed)
      if (!held.has(id)) yield `the machine of ${id} is there, and no spare holds it`;
  }

  #faultOf({ before, after }: RecordEvent): string | undefined {
    if (after?.kind === 'spare') return this.#faultOfSpare(before?.kind === 'spare' ? before : undefined, after);
    if (before?.kind === 'spare' && next[before.status.phase].length > 0)
      return `spare ${before.metadata.id} was removed while it was ${before.status.phase}`;
    return before?.kind === 'task' && after?.kind === 'task' ? this.#faultOfTask(before, after) : undefined;
  }

  #faultOfSpare(before: Spare | undefined, { metadata: { id }, status: { phase } }: Spare): string | undefined {
    const was = before?.status.phase;
    if (was === undefined || was === phase) return undefined;
    if (!next[was].includes(phase)) return `spare ${id} was ${was}, and is ${phase}`;
    const isThere = this.#machines.isThere(id);
    if ((phase === 'Checking' || phase === 'Ready') && !isThere)
      return `spare ${id} is ${phase}, and no machine is there`;
    const isOver = phase === 'Released' || phase === 'Failed';
    if (isOver && isThere && !this.#machines.isAbandoned(id))
      return `spare ${id} is ${phase}, and its machine is there`;
    return undefined;
  }

  #faultOfTask({ status: was }: Task, { metadata, status: is }: Task): string | undefined {
    if (was.phase !== 'Placed' || is.phase !== 'Expired') return undefined;
    for (const { metadata: owner, status } of this.#facts.state.list('spare')) {
      const { id } = owner;
      if (status.task === metadata.id && this.#machines.isThere(id) && !this.#machines.isAbandoned(id))
        return `the room of ${id} was released while its machine is there`;
    }
    return undefined;
  }
}
