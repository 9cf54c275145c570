// Invariant 2, of moves: the guest of an instance that moves never runs on both hosts at once, whether or not it is exclusive; nor at its
// source once its memory is at the target. At rest no move is under way.

import type { Migration } from '../../api/resources/migration.ts';
import type { Commit } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

export const migrationsChecker = (facts: Facts): Checker => new MigrationsChecker(facts);

class MigrationsChecker implements Checker {
  readonly invariant = 2;
  readonly overRestore = 'after';
  readonly #facts: Facts;
  /** Of each instance the moves that there were. */
  readonly #moves = new Map<string, Map<string, Migration>>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onCommit({ events }: Commit): undefined {
    for (const { after } of events) {
      if (after?.kind !== 'instance') continue;
      const { metadata, status } = after;
      const { migration } = status;
      if (migration === undefined) continue;
      const moves = this.#moves.get(metadata.id) ?? new Map<string, Migration>();
      this.#moves.set(metadata.id, moves.set(migration.id, migration));
    }
  }

  onGuest(_host: string, instanceId: string): string | undefined {
    const { world, excused } = this.#facts;
    const moves = this.#moves.get(instanceId);
    if (moves === undefined || excused.instance(instanceId)) return undefined;
    const guests = [...world.guests()].filter((guest) => guest.instanceId === instanceId);
    const running = guests.filter((guest) => guest.running);
    if (guests.length < 2 || running.length === 0) return undefined;
    for (const { id, step, from, to, fromIncarnation, incarnation } of moves.values()) {
      const source = running.some((guest) => guest.host === from && guest.incarnation === fromIncarnation);
      const target = running.some((guest) => guest.host === to && guest.incarnation === incarnation);
      if (source && target) return `${instanceId} runs on ${from} and on ${to} at once, in move ${id}`;
      // Until the move has ended in the store, the target may be told to run with what it has.
      const arrived = guests.some((guest) => guest.host === to && guest.frozen === 'arrived');
      if (source && arrived && step !== 'Failed' && step !== 'Cancelled')
        return `${instanceId} runs on ${from}, and its memory is on ${to}, in move ${id}`;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state, dead, excused, world } = this.#facts;
    for (const { host, instanceId, frozen } of world.guests())
      if (frozen !== undefined && !dead.has(host) && !excused.host(host) && !excused.instance(instanceId))
        yield `${instanceId} stands still on ${host} for a move: ${frozen}`;
    for (const { metadata, status } of state.list('instance')) {
      const { migration } = status;
      if (migration === undefined || metadata.deletionRequestedAtMs !== undefined) continue;
      if (dead.has(migration.from) || dead.has(migration.to)) continue;
      if (excused.instance(metadata.id) || excused.host(migration.from) || excused.host(migration.to)) continue;
      if (migration.step === 'Preparing' || migration.step === 'Copying' || migration.step === 'Finishing')
        yield `${metadata.name} is still moving from ${migration.from} to ${migration.to}: ${migration.step}`;
    }
  }
}
