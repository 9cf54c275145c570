// Tells one boot of this host from the next.

import { readFile } from 'node:fs/promises';
import type { Hypervisor } from './hypervisor.ts';

/** As the hypervisor tells it, or else Linux. */
export function hostBootIdOf(hypervisor: Hypervisor): Promise<string> {
  return hypervisor.hostBootId?.() ?? hostBootId();
}

/** Changes with every boot of the host. */
export async function hostBootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}
