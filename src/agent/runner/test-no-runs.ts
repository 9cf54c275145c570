// The runs of a host that has none. Used by tests only.

import { silentLogger } from '../../base/log.ts';
import { seededPrng } from '../../base/prng.ts';
import { systemClock } from '../../base/system.ts';
import { Runs } from './runs.ts';

export function noRuns(): Runs {
  return new Runs({
    parts: undefined,
    send: () => Promise.reject(new Error('there are no runs')),
    onChange: () => {},
    clock: systemClock,
    prng: seededPrng(1),
    log: silentLogger,
  });
}
