import { expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { watchSuspension } from './watch-suspension.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it('looks once more for who asks while it tells what it has seen, and after a look that failed', async () => {
  const sights = [true, new Error('no connection'), false, true];
  const told: boolean[] = [];
  const watch = watchSuspension({
    look: async () => {
      const sight = sights.shift();
      if (typeof sight !== 'boolean') throw sight ?? new Error('nobody asked for so many looks');
      return sight;
    },
    suspend: async () => {},
    resume: async () => {},
    what: 'a machine',
    log: silentLogger,
  });
  watch.onChange((suspended) => {
    told.push(suspended);
    if (sights.length > 0) watch.lookSoon(); // something has changed meanwhile
  });
  watch.lookSoon();
  await turn();
  expect(sights).toEqual([false, true]);
  watch.lookSoon();
  await turn();
  expect(told).toEqual([true, false, true]);
  expect(sights).toEqual([]);
});
