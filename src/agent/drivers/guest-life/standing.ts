// How a machine stands, as its hypervisor says: what the tables of run states (QEMU's, libvirt's) make of each of them. Data only.

import type { GuestEnd, Trouble } from './hypervisor.ts';

export type Standing =
  /** `trouble`: it stands still, or sleeps, and goes on only when something is done. */
  | { readonly guest: 'running'; readonly trouble?: Trouble }
  /** Its processors stand still because somebody wished it. */
  | { readonly guest: 'suspended' }
  /** It is paused until its disk can be used again; the guest stays `running`, with `DiskFull` or `DiskError` (disk-trouble.ts). */
  | { readonly guest: 'waiting-for-disk' }
  /** It ended by itself, and what ran it stays until that is noted: `exited` or `failed`. */
  | { readonly guest: 'ended'; readonly how: GuestEnd }
  /** Its hypervisor cannot run it any further: `failed` with this reason. */
  | { readonly guest: 'halted'; readonly reason: Trouble };

export const internalErrorCode = 'HypervisorInternalError';

export const standings = {
  running: { guest: 'running' },
  suspended: { guest: 'suspended' },
  'waiting-for-disk': { guest: 'waiting-for-disk' },
  'powered-off': { guest: 'ended', how: 'guest-shutdown' },
  panicked: { guest: 'ended', how: 'guest-panic' },
  asleep: {
    guest: 'running',
    trouble: {
      code: 'GuestAsleep',
      message: 'the guest put itself to sleep (ACPI S3); restart the instance to wake it',
    },
  },
  watchdog: {
    guest: 'halted',
    reason: { code: 'GuestWatchdog', message: 'the watchdog of the guest expired: the guest hangs' },
  },
} as const satisfies Readonly<Record<string, Standing>>;

/** Something that Berth did not start holds it. */
export function held(by: string, why: string): Standing {
  return { guest: 'running', trouble: { code: 'HeldByHypervisor', message: `${by} holds the guest still: ${why}` } };
}

/** With what the hypervisor last said of it, when it said anything. */
export function withWords({ code, message }: Trouble, words: string): Trouble {
  return { code, message: words === '' ? message : `${message}: ${words}` };
}
