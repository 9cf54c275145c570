// Decides whether a machine that its hypervisor stopped is started again under another accelerator: once, and only where it never showed a sign
// of life. What is decided is in the record before anything is ended, so that the next agent completes it.
//
//   running under KVM ─ internal error, silent console ─► noted (`fallback`, pending) ─► QEMU ended ─► running under TCG (no longer pending)

import { join } from 'node:path';
import { acceleratorFallback } from '../../../api/resources/guest.ts';
import { describeError } from '../../../base/log.ts';
import { consoleSize } from './ways-in/console-log.ts';
import { guestFiles } from './guest-files.ts';
import type { GuestRecord } from './guest-record.ts';
import type { Hands } from './hands.ts';
import { hostBootIdOf } from './host-boot.ts';
import type { Trouble } from './hypervisor.ts';
import { internalErrorCode } from './standing.ts';

type Fallback = NonNullable<GuestRecord['fallback']>;

/** Undefined: the guest has failed. */
export async function fallbackFrom(hands: Hands, record: GuestRecord, trouble: Trouble): Promise<Fallback | undefined> {
  const { hypervisor } = hands;
  if (trouble.code !== internalErrorCode || record.accelerator !== 'kvm' || record.stopRequested) return undefined;
  if (hypervisor.fallBack === undefined || record.ready) return undefined;
  const path = join(await hands.directoryOf(record.instanceId), guestFiles.console);
  if ((await consoleSize(path)) > record.bootOffset) return undefined;
  const image = record.imageDigest ?? record.image?.path ?? record.instanceId;
  await hypervisor.fallBack({ image, reason: trouble.message }).catch((error: unknown) =>
    // The guest runs under TCG all the same; the next one to fail is noted again.
    hands.log.warn('cannot note that KVM could not run a guest', { image, error: describeError(error) }),
  );
  return {
    hostBootId: await hostBootIdOf(hypervisor),
    pending: true,
    reason: {
      code: acceleratorFallback,
      message: `KVM could not run this guest, which is started again under TCG, ten times slower: ${trouble.message}`,
    },
  };
}

/** Holds until the host boots again, or its operator allows nothing but KVM. */
export function hasFallenBack({ hypervisor }: Hands, { fallback }: GuestRecord, hostBootId: string): boolean {
  return hypervisor.fallBack !== undefined && fallback?.hostBootId === hostBootId;
}
