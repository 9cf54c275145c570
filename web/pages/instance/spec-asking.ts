// The spec of an instance that asks for other amounts. Pure.

import type { InstanceSpec } from '../../../src/api/resources/instance.ts';

const fields = { VCPU: 'cpus', MEMORY_MB: 'memoryMiB', DISK_GB: 'diskGiB' } as const;

/** Undefined: some amount has no field in the spec that could be changed alone. */
export function specAsking(spec: InstanceSpec, ask: Readonly<Record<string, number>>): InstanceSpec | undefined {
  const changed: Record<string, number> = {};
  for (const [resourceClass, amount] of Object.entries(ask)) {
    const field = Object.entries(fields).find(([name]) => name === resourceClass)?.[1];
    if (field === undefined) return undefined;
    changed[field] = amount;
  }
  return { ...spec, ...changed };
}
