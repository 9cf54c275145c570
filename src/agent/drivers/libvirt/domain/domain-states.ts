// What each state of a domain of libvirt, with its reason, makes of the guest: one total table. Pure.

import { held, type Standing, standings } from '../../guest-life/standing.ts';
import { type ShutoffReason, shutoffReasons } from './domain-log.ts';
import type { DomainState } from '../libvirt.ts';

export type DomainStanding =
  | Standing
  /** libvirt knows that QEMU stands still, and not why: QEMU itself has to be asked. */
  | { readonly guest: 'unexplained' }
  | { readonly guest: 'shutoff'; readonly why: ShutoffReason };

const unexplained = { guest: 'unexplained' } as const;
const by = 'libvirt';
const migrating = held(by, 'somebody migrates it, which Berth did not ask for');

/** `virDomainPausedReason` of libvirt-domain.h, by number. */
export const pausedReasons = [
  ['unknown', unexplained],
  ['user', standings.suspended],
  ['migration', migrating],
  ['save', held(by, 'somebody saves it into a file')],
  ['dump', held(by, 'somebody dumps its memory; it goes on afterwards')],
  ['ioerror', standings['waiting-for-disk']],
  ['watchdog', standings.watchdog],
  ['from-snapshot', held(by, 'somebody set it back to a snapshot; "virsh resume" lets it go on')],
  ['shutting-down', standings.running],
  ['snapshot', held(by, 'somebody takes a snapshot; it goes on afterwards')],
  ['crashed', standings.panicked],
  ['starting-up', standings.running],
  ['postcopy', migrating],
  ['postcopy-failed', migrating],
  ['api-error', held(by, 'one of its own operations failed; "virsh resume" lets it go on')],
] as const satisfies readonly (readonly [name: string, standing: DomainStanding])[];

/** Of `reason`, libvirt's number; its meaning hangs on the state. Also of reasons that only a newer libvirt knows. */
export function standingOfDomain(seen: { readonly state: DomainState; readonly reason: number }): DomainStanding {
  const { state, reason } = seen;
  switch (state) {
    case 'none':
    case 'running':
    case 'blocked':
    case 'shutdown': // it is being shut down
      return standings.running;
    case 'paused':
      return pausedReasons[reason]?.[1] ?? held(by, `libvirt gives the reason ${reason}, which is not known here`);
    case 'crashed':
      return standings.panicked;
    case 'suspended': // by power management
      return standings.asleep;
    case 'shutoff':
      return { guest: 'shutoff', why: shutoffReasons[reason] ?? 'unknown' };
  }
}
