// The file of a host's ledger, on a disk that outlives the agent: writes take time, may fail, and at a crash the one under way is
// either there or not, never half.

import { sleep } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';
import type { LedgerFile } from '../agent/ledger.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Tally } from './tally.ts';
import type { Timeline } from './timeline.ts';
import { drawDelayMs, type Weather } from './weather.ts';

export interface SimDisk {
  /** The file as one life of the agent sees it. */
  file(clock: ProcessClock): LedgerFile;
}

export interface SimDiskOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly weather: () => Weather['disk'];
  readonly tally: Tally;
}

export function createSimDisk({ timeline, prng, weather, tally }: SimDiskOptions): SimDisk {
  let content: string | null = null;
  const latencyMs = (): number => drawDelayMs(prng, { minMs: 0, meanMs: weather().latencyMsMean });
  return {
    file: (clock) => ({
      async read() {
        await sleep(clock, latencyMs());
        return content;
      },
      async write(text) {
        const landsMs = latencyMs();
        await sleep(clock, prng.below(landsMs + 1));
        if (prng.chance(weather().failed, 1000)) {
          tally.hit('disk-failed');
          throw new Error('the false disk was told to be full');
        }
        // From here on the kernel has it: it lands though the agent may die.
        await new Promise<void>((resolve) => {
          timeline.schedule(landsMs, () => {
            content = text;
            resolve();
          });
        });
        await sleep(clock, 0);
      },
      async setAside() {
        await sleep(clock, latencyMs());
        content = null;
        return 'nowhere';
      },
    }),
  };
}
