// Invariant 9, as guests see it: a guest is stopped only by an order, and removed only when it is no longer wanted, whatever was
// restarted, lagged or was forgotten meanwhile. A guest may also fail by itself or with its host.

import type { Instance } from '../../api/resources/instance.ts';
import { holdsOnlyDisk } from '../../core/ledger/ledger.ts';
import type { RecordEvent } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

interface Seen {
  readonly incarnation: number;
  readonly made: boolean;
  readonly running: boolean;
  readonly stopRequested: boolean;
}

export function undisturbedChecker({ world }: Facts): Checker {
  const seen = new Map<string, Seen>();
  /** Lives that some commit let be stopped, or taken away. That may take long to be heard, so it holds for good. */
  const mayStop = new Set<string>();
  const mayGo = new Set<string>();
  const gone = new Set<string>();
  /** Lives that instances have, or had: what has arrived live is none of them before the commit of its move. */
  const owned = new Set<string>();

  const note = ({ before, after }: RecordEvent): void => {
    const former = before?.kind === 'instance' ? before : undefined;
    const now = after?.kind === 'instance' && (!former || after.metadata.id === former.metadata.id) ? after : undefined;
    if (now) owned.add(lifeOf(now));
    if (former && (!now || now.metadata.deletionRequestedAtMs !== undefined)) gone.add(former.metadata.id);
    if (former && now && bound(former) !== bound(now)) mayGo.add(lifeOf(former));
    if (
      now &&
      (now.spec.powerState === 'stopped' ||
        now.status.phase === 'Exited' ||
        now.status.phase === 'Failed' ||
        now.status.migration?.step === 'Copying' ||
        now.status.resize?.pending ||
        mayEndByCheck(now))
    )
      mayStop.add(lifeOf(now));
    // What waits at the target of a live move goes when that has come to nothing.
    const move = now?.status.migration;
    if (now && (move?.step === 'Failed' || move?.step === 'Cancelled'))
      mayGo.add(`${now.metadata.id}.${move.incarnation}`);
    const released = before?.kind === 'allocation' ? before : undefined;
    if (released && after === null) mayGo.add(`${released.consumer.id}.${released.consumer.incarnation}`);
    if (after?.kind === 'allocation' && holdsOnlyDisk(after))
      mayStop.add(`${after.consumer.id}.${after.consumer.incarnation}`);
  };

  return {
    invariant: 9,
    onCommit({ events }) {
      for (const event of events) note(event);
      return undefined;
    },
    onGuest(host, instanceId) {
      const key = `${host}/${instanceId}`;
      const before = seen.get(key);
      const guest = world.guest(host, instanceId);
      if (guest === undefined) seen.delete(key);
      else {
        const { incarnation, created, running, stopRequested } = guest;
        seen.set(key, { incarnation, made: created, running, stopRequested });
      }
      if (before === undefined || gone.has(instanceId)) return undefined;
      const life = `${instanceId}.${before.incarnation}`;
      if (mayGo.has(life)) return undefined;
      const name = `${instanceId} incarnation ${before.incarnation} on ${host}`;
      if (guest?.incarnation !== before.incarnation)
        return before.made && owned.has(life)
          ? `the guest of ${name} was taken away, and it was always wanted`
          : undefined;
      const stopped = before.running && guest.stopRequested && !before.stopRequested;
      return stopped && !mayStop.has(life) ? `the guest of ${name} was stopped, and nobody wanted that` : undefined;
    },
  };
}

/** Its owner lets its host end it: when a check fails, or when the lease of the host has ended. */
export function mayEndByCheck({ spec: { checks, selfStop } }: Instance): boolean {
  return selfStop === true || checks?.liveness !== undefined || checks?.startup !== undefined;
}

function lifeOf({ metadata, status }: Instance): string {
  return `${metadata.id}.${status.incarnation}`;
}

function bound({ status }: Instance): string {
  return `${status.host ?? ''} ${status.incarnation}`;
}
