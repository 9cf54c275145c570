// Faults of the store. Calls that fail or stay unanswered are weather, not faults.

import { sleep } from '../../base/clock.ts';
import { drawDownMs, type Fault } from './fault.ts';

export const storeFaults = [
  {
    kind: 'store-compacted',
    whileRestoring: true,
    strike({ on, prng, hit }) {
      const revision = on.revision();
      if (revision === 0) return;
      hit(`below ${revision}`);
      return on.store.compact(Math.max(1, revision - prng.below(20)));
    },
  },
  {
    kind: 'store-crash',
    whileRestoring: true,
    strike({ on: { database }, prng, hit }) {
      if (prng.chance(3, 4)) return database.crashUnderNext({ downMs: 200 + drawDownMs(prng), onCrash: () => hit('') });
      hit('');
      database.crash(200 + drawDownMs(prng));
    },
    mend: ({ database }) => database.crashUnderNext(undefined),
  },
  {
    kind: 'store-away',
    async strike({ on: { clock, database }, prng, hit }) {
      hit('');
      const awayMs = 5000 + prng.below(55_000);
      database.leave(awayMs);
      await sleep(clock, awayMs); // not shortened by the end of the storm: nothing brings the store back sooner
    },
  },
  {
    kind: 'store-crawls',
    async strike({ on, prng, hit, wait }) {
      hit('');
      on.crawl(50 + prng.below(prng.chance(1, 3) ? 3000 : 400));
      await wait(1000 + prng.below(20_000));
      on.crawl(undefined);
    },
    mend: ({ crawl }) => crawl(undefined),
  },
] as const satisfies readonly Fault[];
