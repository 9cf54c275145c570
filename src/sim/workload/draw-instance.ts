// The images of a workload, and random instances of them.

import type { Prng } from '../../base/prng.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';

export const imageNames = ['tiny', 'debian-12'];

/** Its rule for the loss of its host, where the run is about that. */
export function drawLoss(prng: Prng, { exclusive }: Partial<InstanceSpec>): Partial<InstanceSpec> {
  const selfStop = exclusive === true && prng.chance(2, 3);
  const rules =
    exclusive && !selfStop ? (['wait', 'fail'] as const) : (['replace', 'replace', 'replace', 'fail'] as const);
  const onHostLoss = rules[prng.below(rules.length)];
  return { ...(onHostLoss ? { onHostLoss } : {}), ...(selfStop ? { selfStop } : {}) };
}

export function drawInstance(prng: Prng): Partial<InstanceSpec> {
  return {
    image: imageNames[prng.below(imageNames.length)] ?? 'tiny',
    cpus: 1 + prng.below(prng.chance(1, 5) ? 4 : 2),
    memoryMiB: 256 * (1 + prng.below(6)),
    diskGiB: prng.below(5),
    powerState: prng.chance(1, 10) ? 'stopped' : 'running',
    restartPolicy: prng.chance(1, 2) ? 'OnFailure' : 'Never',
    exclusive: prng.chance(1, 3),
    ports: prng.chance(1, 5) ? [{ guestPort: 22, hostPort: 0, protocol: 'tcp' }] : [],
    stopGraceMs: prng.below(3000),
    ...(prng.chance(1, 2) ? { priority: prng.below(7) - 3 } : {}),
    ...(prng.chance(1, 4) ? { preemption: 'LowerPriority' } : {}),
  };
}
