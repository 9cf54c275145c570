// The files that every guest has in its folder, and what it is known by.

import { createHash } from 'node:crypto';
import type { GuestSpec } from '../driver.ts';

export const guestFiles = {
  disk: 'disk.qcow2',
  seed: 'seed.iso',
  runDisk: 'run.img',
  console: 'console.log',
  /** Of a guest that is suspended to disk. */
  memory: 'memory',
  uefiVariables: 'uefi-vars.fd',
  tpmState: 'tpm.state',
} as const;

/** A guest that moved knows itself as the incarnation that its disk was made for. */
export function bornAs({
  incarnation,
  diskIncarnation = incarnation,
}: Pick<GuestSpec, 'incarnation' | 'diskIncarnation'>): number {
  return diskIncarnation;
}

/** One uuid for each life of an instance, the same on every host and after every restart. */
export function guestUuid(instanceId: string, incarnation: number): string {
  const hex = createHash('sha256').update(`${instanceId}/${incarnation}`).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  // Version 8 of RFC 9562: "by a rule of one's own".
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** In QEMU's own range, which leaves 24 bits: of 100 guests on one network two share one with a chance of 1 in 3,400. */
export function macAddress(uuid: string): string {
  const hex = uuid.slice(-6);
  return `52:54:00:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}`;
}
