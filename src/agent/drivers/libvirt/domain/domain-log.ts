// What libvirt's own log of a domain says: how its last run ended, which libvirtd forgets when it is restarted, and what QEMU complained
// of. Pure but for reading; a log that cannot be read says nothing.

import { join } from 'node:path';
import { tailText } from '../../guest-life/ways-in/console-log.ts';

/** `virDomainShutoffReason` of libvirt-domain.h, by number and as the log has them. */
export const shutoffReasons = [
  'unknown',
  'shutdown',
  'destroyed',
  'crashed',
  'migrated',
  'saved',
  'failed',
  'from snapshot',
  'daemon',
] as const;
export type ShutoffReason = (typeof shutoffReasons)[number];

/** Its command line is a few KiB; what QEMU says in one run is seldom more. */
const tailBytes = 64 * 1024;
const wordsMax = 3;

export interface DomainLog {
  /** Of the last run; undefined: it does not say. */
  readonly reason: ShutoffReason | undefined;
  /** What QEMU said in it last, as one line; empty: nothing. */
  readonly words: string;
}

/** `directory`: where libvirt keeps the logs of its QEMU domains. */
export async function readDomainLog(directory: string, name: string): Promise<DomainLog> {
  return parseDomainLog(await tailText(join(directory, `${name}.log`), tailBytes).catch(() => ''));
}

/**
 *     2026-01-31 12:00:00.000+0000: starting up libvirt version: …
 *     LC_ALL=C \
 *     /usr/bin/qemu-system-x86_64 \
 *     -name guest=… \
 *     -msg timestamp=on
 *     2026-01-31T12:00:01.000000Z qemu-system-x86_64: …
 *     2026-01-31 12:00:02.000+0000: shutting down, reason=crashed
 */
export function parseDomainLog(text: string): DomainLog {
  const lines = text.split('\n');
  const run = lines.slice(lines.findLastIndex((line) => startingUp.test(line)) + 1);
  const reason = run.map((line) => shuttingDown.exec(line)?.[1]).findLast((found) => found !== undefined);
  const words = run.filter((line) => said.test(line) && !expected.test(line)).slice(-wordsMax);
  return { reason: shutoffReasons.find((known) => known === reason), words: words.join('; ').slice(0, 2000) };
}

const stamp = String.raw`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+0000: `;
const startingUp = new RegExp(`${stamp}starting up`);
const shuttingDown = new RegExp(`${stamp}shutting down, reason=([a-z ]+)$`);
/** KVM's own words have no time before them. */
const said = /^(?:\d{4}-\d\d-\d\dT\S+Z qemu-\S+: |KVM internal error\b|emulation failure$)/;
const expected = / terminating on signal 15 from pid /;
