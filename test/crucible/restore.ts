// What a restore from a backup may claim, after everything else was judged: the store is another epoch, what the backup knew is there,
// and guests that it does not know run on untouched and are reported.

import { sleep } from '../../src/base/clock.ts';
import { systemClock } from '../../src/base/system.ts';
import type { FakeWorld } from '../../src/agent/drivers/fake/world.ts';
import { ApiError } from '../../src/api/errors.ts';
import { loadBackup } from '../../src/commands/backup-file.ts';
import { decodeRecord } from '../../src/core/state/codec.ts';
import type { Instance } from '../../src/api/resources/instance.ts';
import { type ControlPlane, type Fleet, untilReady } from './fleet.ts';

export interface RestoreParts {
  readonly fleet: Fleet;
  readonly world: FakeWorld;
  readonly storeUrl: string;
  readonly file: string;
  /** Of the store as it was, and a revision that it had. */
  readonly before: { readonly epoch: string; readonly revision: number };
}

const settleMsMax = 60_000;
/** Enough for any order to reach a host and be carried out. */
const lookMs = 5_000;

/** The control planes are stopped when it is called, and run when it resolves; sentences say what is not as it must be. */
export async function judgeRestore({ fleet, world, storeUrl, file, before }: RestoreParts): Promise<string[]> {
  const found: string[] = [];
  const known = new Map<string, Instance>();
  for (const [key, value] of (await loadBackup(file)).entries) {
    const record = decodeRecord(key, value);
    if (record.kind === 'instance') known.set(record.metadata.id, record);
  }
  const exclusive = new Set(
    [...known.values()].filter(({ spec }) => spec.exclusive).map(({ metadata }) => metadata.id),
  );
  const strangers = world.guests().filter(({ running, instanceId }) => running && !known.has(instanceId));
  const boots = new Map(strangers.map((guest) => [guest, guest.boots]));
  const doubleStarts = world.doubleStarts.length;

  const { exitCode, stderr } = await fleet.berth(undefined, 'restore', file, '--store', storeUrl, '--yes');
  if (exitCode !== 0) return [`berth restore ended with ${exitCode}: ${stderr.trim()}`];
  for (const { daemon } of fleet.controlPlanes) daemon.start();
  await Promise.all(fleet.controlPlanes.map(untilReady));
  const [plane] = fleet.controlPlanes;
  if (plane === undefined) return found;

  const waits = await untilNone(() => missingAfterRestore(fleet, plane, { known, strangers }));
  found.push(...waits);
  await sleep(systemClock, lookMs);
  for (const guest of strangers)
    if (!guest.running || guest.boots !== boots.get(guest))
      found.push(
        `guest ${guest.instanceId} on ${guest.host}, which the backup does not know, was ended or booted anew`,
      );
  for (const { instanceId, hosts } of world.doubleStarts.slice(doubleStarts))
    if (exclusive.has(instanceId))
      found.push(`exclusive ${instanceId} runs on ${hosts.join(' and ')} after the restore`);

  const client = fleet.client(plane);
  const { epoch } = await client.list('instance', { limit: 1 });
  if (epoch === before.epoch) found.push('the store has the epoch that it had before the restore');
  try {
    for await (const change of client.watch('instance', before, AbortSignal.timeout(5_000))) {
      found.push(`a watch from before the restore went on with a ${change.type}`);
      break;
    }
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'Compacted'))
      found.push(`a watch from before the restore was told: ${error instanceof Error ? error.message : String(error)}`);
  }
  return found;
}

/** Hosts that are not ready, instances that are not there, guests that are not reported. */
async function missingAfterRestore(
  fleet: Fleet,
  plane: ControlPlane,
  what: {
    readonly known: ReadonlyMap<string, Instance>;
    readonly strangers: readonly { readonly host: string; readonly instanceId: string }[];
  },
): Promise<string[]> {
  const client = fleet.client(plane);
  const missing: string[] = [];
  const { items: hosts } = await client.list('host');
  for (const { metadata, status } of hosts)
    if (!status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
      missing.push(`host ${metadata.name} is not ready after the restore`);
  const unknown = new Set(
    hosts.flatMap(({ metadata, status }) => status.unknownGuests.map((each) => `${metadata.name} ${each.instanceId}`)),
  );
  for (const { host, instanceId } of what.strangers)
    if (!unknown.has(`${host} ${instanceId}`)) missing.push(`nobody is told of guest ${instanceId} on ${host}`);
  const { items } = await client.list('instance', { limit: 1_000 });
  const there = new Set(items.map(({ metadata }) => metadata.id));
  for (const { metadata } of what.known.values())
    if (metadata.deletionRequestedAtMs === undefined && !there.has(metadata.id))
      missing.push(`instance ${metadata.name} of the backup is not there after the restore`);
  return missing;
}

/** What is left of it when there is no more time. */
async function untilNone(ask: () => Promise<string[]>): Promise<string[]> {
  const deadlineMs = systemClock.monotonicMs() + settleMsMax;
  for (;;) {
    const left = await ask().catch((error: unknown) => [`no answer after the restore: ${String(error)}`]);
    if (left.length === 0 || systemClock.monotonicMs() > deadlineMs) return left;
    await sleep(systemClock, 500);
  }
}
