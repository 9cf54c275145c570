import { expect, it } from 'vitest';
import { placement } from '../../controllers/placement.ts';
import { claim } from '../../ledger/ledger.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testImage,
  testInstance,
  testVolume,
} from '../../testing.ts';
import { requestOf } from '../request.ts';
import { schedule, summarize } from '../schedule.ts';

it('a host takes no more instances than its operator allows', () => {
  const cache = testCache([testImage(), ...testHost('h1', { spec: { instancesMax: 2 } })]);
  const ctx = testContext();
  for (const name of ['a', 'b', 'c']) {
    addRecord(cache, testInstance(name));
    commitPlan(cache, placement.reconcile(cache, `instances/default/${name}`, ctx));
  }
  const answer = schedule(cache, requestOf(cache, testInstance('c')));
  expect(answer.placed ? '' : summarize(answer)).toBe('0 of 1 host: 1 InstancesMax');
  expect(cache.heldOnHost('h1')).toBe(2);
});

it('a volume is no instance', () => {
  const [host, provider] = testHost('h1', { spec: { instancesMax: 1 } });
  const disk = testVolume('data', {}, { phase: 'Creating', host: 'h1' });
  const { id, project, name } = disk.metadata;
  const held = claim(testCache([host, provider]), {
    consumer: { kind: 'volume', id, incarnation: 1, project, name },
    host: 'h1',
    held: { [provider.id]: { DISK_GB: 10 } },
    driver: '',
  });
  const records = held.flatMap(({ value }) => (value === null ? [] : [value]));
  const cache = testCache([testImage(), host, ...records, disk]);
  expect(cache.heldOnHost('h1')).toBe(0);
  expect(schedule(cache, requestOf(cache, testInstance('a'))).placed).toBe(true);
});
