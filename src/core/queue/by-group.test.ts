// An instance that waits for a neighbour is woken when one arrives or leaves, and no other instance is.

import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { keys } from '../state/keys.ts';
import type { Cache } from '../state/cache.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testGroup,
  testHost,
  testImage,
  testInstance,
} from '../testing.ts';
import { queueOf } from './queue.ts';

function waiting(name: string, app: string, placementSpec: InstanceSpec['placement'] = {}) {
  return testInstance(name, { placement: placementSpec }, {}, { labels: { app } });
}

let ids = 0;
const ctx = testContext({ newId: (prefix) => `${prefix}_${++ids}` });

function place(cache: Cache, name: string): void {
  commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
}

function wokenIn(cache: Cache): string[] {
  const woken: string[] = [];
  queueOf(cache);
  cache.onChange((change) => {
    for (const key of placement.wakes(change, cache)) woken.push(key.slice('instances/default/'.length));
  });
  return woken;
}

describe('waiting for neighbours', () => {
  it('ends when the one to be near is placed', () => {
    const near = { affinity: [{ to: { app: 'db' }, by: 'host', required: true }] };
    const cache = testCache([
      testImage(),
      ...testHost('h1'),
      waiting('web', 'web', near),
      waiting('other', 'other', { affinity: [{ to: { app: 'no' }, by: 'host', required: true }] }),
    ]);
    for (const name of ['web', 'other']) place(cache, name);
    const woken = wokenIn(cache);
    addRecord(cache, waiting('db', 'db'));
    place(cache, 'db');
    expect(woken).toEqual(['db', 'web']);
    place(cache, 'web');
    expect(cache.get('instance', 'instances/default/web')?.value.status.host).toBe('h1');
  });

  it('ends when the one to be away from has ended', () => {
    const away = { antiAffinity: [{ to: { app: 'a' }, by: 'host', required: true }] };
    const cache = testCache([
      testImage(),
      ...testHost('h1'),
      waiting('first', 'a', away),
      waiting('second', 'a', away),
    ]);
    for (const name of ['first', 'second']) place(cache, name);
    const first = cache.get('instance', 'instances/default/first')?.value ?? expect.unreachable();
    const woken = wokenIn(cache);
    addRecord(cache, { ...first, status: { ...first.status, phase: 'Exited' } });
    expect(woken).toEqual(['second']);
  });

  it('ends when the placement group allows more', () => {
    const cache = testCache([
      testImage(),
      ...testHost('h1'),
      testGroup('g', { maxPerHost: 1 }),
      waiting('a', 'a', { group: 'g' }),
      waiting('b', 'b', { group: 'g' }),
    ]);
    for (const name of ['a', 'b']) place(cache, name);
    const woken = wokenIn(cache);
    addRecord(cache, testGroup('g', { maxPerHost: 2 }));
    expect(woken).toEqual(['b']);
  });
});
