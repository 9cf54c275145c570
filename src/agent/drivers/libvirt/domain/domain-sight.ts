// One look at a domain: whether it runs, and if not, how its last run ended.

import type { RunEnd } from '../../guest-life/hypervisor.ts';
import type { Standing } from '../../guest-life/standing.ts';
import type { Connection } from '../connection.ts';
import type { ShutoffReason } from './domain-log.ts';
import { standingNow } from './domain-standing.ts';
import type { Domain } from '../libvirt.ts';

export type DomainSight =
  | { readonly running: true; readonly standing: Standing }
  | { readonly running: false; readonly end: RunEnd };

/** Throws when libvirt is away. */
export async function lookAtDomain({
  connection,
  domain,
  loggedReason,
}: {
  readonly connection: Connection;
  readonly domain: Domain;
  /** How the last run ended, for the case that libvirt has forgotten it. */
  readonly loggedReason: () => Promise<ShutoffReason | undefined>;
}): Promise<DomainSight> {
  const standing = await standingNow(connection, domain);
  if (standing === undefined) {
    return { running: false, end: { cause: 'other', detail: `somebody made libvirt forget domain ${domain.name}` } };
  }
  if (standing.guest !== 'shutoff') return { running: true, standing };
  const { why } = standing;
  return { running: false, end: endOf(why === 'unknown' ? ((await loggedReason()) ?? why) : why) };
}

function endOf(reason: ShutoffReason): RunEnd {
  if (reason === 'shutdown') return { cause: 'guest-shutdown', detail: 'the guest powered itself off' };
  return { cause: 'other', detail: details[reason] };
}

const details: Readonly<Record<Exclude<ShutoffReason, 'shutdown'>, string>> = {
  unknown: 'QEMU has ended, and libvirt does not know why: libvirt itself has restarted since',
  destroyed: 'libvirt ended QEMU, because somebody asked it to',
  crashed: 'QEMU was killed, or crashed',
  migrated: 'somebody moved the domain to another host',
  saved: 'somebody saved the domain into a file; "virsh managedsave-remove" drops it',
  failed: 'QEMU could not be started',
  'from snapshot': 'somebody set the domain back to a snapshot that does not run',
  daemon: 'libvirt could not go on with QEMU, and ended it',
};
