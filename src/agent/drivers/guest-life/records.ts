// The records a guest begins with, and what others are shown of one. Pure.

import type { Phase } from '../../../api/agent-protocol.ts';
import type { Guest, GuestSpec } from '../driver.ts';
import type { GuestRecord } from './guest-record.ts';

export function newRecord(spec: GuestSpec, uuid: string): GuestRecord {
  return {
    ...blank,
    instanceId: spec.instanceId,
    incarnation: spec.incarnation,
    uuid,
    state: 'preparing',
    created: false,
    cpus: spec.cpus,
    memoryMiB: spec.memoryMiB,
    ...(spec.resized === undefined ? {} : { resized: spec.resized }),
    ...(spec.firmware === undefined ? {} : { firmware: spec.firmware }),
    ...(spec.tpm === undefined ? {} : { tpm: spec.tpm }),
    seeded: spec.image.nocloud,
    ...(spec.runDisk === undefined ? {} : { runDisk: true }),
    ...(spec.containers === undefined ? {} : { containers: spec.containers.map(({ name }) => name) }),
  };
}

/**
 * Stands in memory for a record that cannot be read. Never written: what is on disk may yet be mended by hand. `life`: what runs of it, or why that
 * is not known. Then it is not called failed, so that its restart policy starts no second one beside it.
 */
export function damagedRecord(instanceId: string, directory: string, life: string | undefined): GuestRecord {
  return {
    ...blank,
    instanceId,
    incarnation: 0,
    uuid: damagedUuid,
    state: life === undefined ? 'failed' : 'running',
    reason: {
      code: 'RecordDamaged',
      message: `the record of this guest cannot be read${life === undefined ? '' : `, and ${life}`}; nothing is done to it, nor to its disk: put guest.json in ${directory} right and restart the agent, or delete the instance`,
    },
    created: true,
    cpus: 1,
    memoryMiB: 1,
    seeded: false,
  };
}

export function isDamaged(record: GuestRecord): boolean {
  return record.uuid === damagedUuid;
}

const damagedUuid = '';

const blank = {
  version: 1,
  removing: false,
  launching: false,
  stopRequested: false,
  ports: [],
  bootOffset: 0,
  consoleStart: 0,
  ready: false,
  phases: [],
} satisfies Partial<GuestRecord>;

export function asGuest(record: GuestRecord, progress: string | undefined): Guest {
  const reason = record.reason ?? fallbackReason(record);
  return {
    instanceId: record.instanceId,
    incarnation: record.incarnation,
    state: record.state === 'running' && record.suspended === true ? 'suspended' : record.state,
    ready: record.ready,
    ports: record.ports,
    phases: record.phases,
    ...(isDamaged(record) ? { damaged: true } : {}),
    ...(record.volumes === undefined ? {} : { volumes: record.volumes.map(({ volumeId }) => volumeId) }),
    ...(record.saved === true ? { saved: true } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(record.address === undefined || isOver(record.state) ? {} : { address: record.address }),
    ...(record.accelerator === undefined ? {} : { accelerator: record.accelerator }),
    ...(record.imageDigest === undefined ? {} : { imageDigest: record.imageDigest }),
    ...(record.resized === undefined ? {} : { resized: record.resized }),
    ...(record.handedOver === undefined || isOver(record.state) ? {} : { handedOver: record.handedOver }),
    ...(record.startedAtMs === undefined ? {} : { startedAtMs: record.startedAtMs }),
    ...(progress === undefined || record.state !== 'preparing' ? {} : { progress }),
  };
}

/** While it runs, as long as nothing else is to be said of it. */
function fallbackReason({ state, accelerator, fallback }: GuestRecord): GuestRecord['reason'] {
  const fallen = fallback !== undefined && (fallback.pending || accelerator === 'tcg');
  return state === 'running' && fallen ? fallback.reason : undefined;
}

/** Its address may be another's by now. */
const isOver = (state: GuestRecord['state']): boolean =>
  state === 'stopped' || state === 'exited' || state === 'failed';

export const phase = (name: string, startedAtMs: number, endedAtMs: number): Phase => ({
  name,
  startedAtMs,
  durationMs: Math.max(0, endedAtMs - startedAtMs), // wall time may jump back
});

/** The boot lasts from QEMU's start until the guest says that it is over. */
export function withBoot(record: GuestRecord, nowMs: number): Phase[] {
  const before = record.phases.filter((each) => each.name !== 'boot');
  const startPhase = before.find((each) => each.name === 'start');
  const startedAtMs =
    startPhase === undefined ? (record.startedAtMs ?? nowMs) : startPhase.startedAtMs + startPhase.durationMs;
  return [...before, phase('boot', startedAtMs, nowMs)];
}
