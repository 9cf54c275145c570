// What the records say about the move of an instance. The only place that knows which steps are before the commit of ownership.

import type { Instance } from '../../api/resources/instance.ts';
import type { Migration } from '../../api/resources/migration.ts';
import type { Allocation } from '../state/records.ts';

/** The move that is under way and not committed: its guest belongs to the source. */
export function openMigration({ status }: Pick<Instance, 'status'>): Migration | undefined {
  const { migration } = status;
  if (migration?.step !== 'Preparing' && migration?.step !== 'Copying') return undefined;
  const still = status.host === migration.from && status.incarnation === migration.fromIncarnation;
  return still ? migration : undefined;
}

/** Open, or committed while the source still has something of it. */
export function isMigrating({ migration }: Instance['status']): boolean {
  return migration?.step === 'Preparing' || migration?.step === 'Copying' || migration?.step === 'Finishing';
}

/** The part of this allocation's host in the open move of the instance. */
export function roleIn(
  instance: Instance,
  { host, consumer }: Allocation,
): { readonly role: 'incoming' | 'outgoing'; readonly migration: Migration } | undefined {
  const migration = openMigration(instance);
  if (migration === undefined) return undefined;
  if (host === migration.to && consumer.incarnation === migration.incarnation) return { role: 'incoming', migration };
  if (migration.step === 'Copying' && host === migration.from && consumer.incarnation === migration.fromIncarnation)
    return { role: 'outgoing', migration };
  return undefined;
}
