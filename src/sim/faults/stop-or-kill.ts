// Stops a process as a supervisor does: it asks first, and kills a process that does not stop in time.

import { type Clock, sleep } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';

interface Stoppable {
  stop(): Promise<void>;
  crash(): void;
}

export async function stopOrKill(
  stopped: Stoppable,
  { clock, prng }: { readonly clock: Clock; readonly prng: Prng },
): Promise<void> {
  await Promise.race([stopped.stop(), sleep(clock, 2000 + prng.below(8000))]);
  stopped.crash();
}
