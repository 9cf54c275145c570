import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../api/explanation.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { keys } from '../state/keys.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testFleet,
  testHost,
  type TestHost,
  testImage,
  testInstance,
} from '../testing.ts';
import { explain } from './explain.ts';

const ctx = testContext();
const four = { capacity: { VCPU: 4, MEMORY_MB: 8192 } };
const two = { cpus: 2, memoryMiB: 512 };

/**
 * The explanation of each member of gang g, once `running` have been placed. The size of the gang is the number of
 * members, unless `size` is given.
 */
function explained(
  hosts: Record<string, TestHost>,
  running: Record<string, Partial<InstanceSpec>>,
  waiting: Record<string, Partial<InstanceSpec>>,
  size = Object.keys(waiting).length,
): { summaries: string[]; nearest: (string[] | undefined)[] } {
  const cache = testFleet(hosts);
  for (const [name, spec] of Object.entries(running)) {
    addRecord(cache, testInstance(name, { ...two, ...spec }));
    commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
  }
  const members = Object.entries(waiting).map(([name, spec], i) =>
    testInstance(name, { ...two, gang: { name: 'g', size }, ...spec }, {}, { createdAtMs: i, labels: { app: 'g' } }),
  );
  for (const member of members) addRecord(cache, member);
  const before = JSON.stringify([...cache.list('host')]);
  const told: Explanation[] = members.map((member) => explain(cache, member));
  expect(JSON.stringify([...cache.list('host')])).toBe(before);
  return {
    summaries: told.map(({ summary }) => summary),
    nearest: told.map(({ nearest }) => nearest?.map(({ message }) => message)),
  };
}

describe('one of a gang', () => {
  it('is told how many of them fit at once, though it would fit alone', () => {
    const { summaries } = explained({ h1: four }, {}, { a: {}, b: {}, c: {} });
    expect(new Set(summaries)).toEqual(
      new Set(['gang g: 2 of 3 fit at once; then c: 0 of 1 host: 1 InsufficientCpu; alone it would fit on h1']),
    );
  });

  it('is told first that some are missing, and of no change that would not be enough', () => {
    const full = explained({ h1: four }, { x: { cpus: 4 } }, { a: {}, b: {} }, 3);
    expect(full).toEqual({
      summaries: Array(2).fill(
        'GangIncomplete: 2 of the 3 of gang g are there; it alone: 0 of 1 host: 1 InsufficientCpu',
      ),
      nearest: [undefined, undefined],
    });
    const free = explained({ h1: four }, {}, { a: {}, b: {} }, 3);
    expect(free.summaries[0]).toBe('GangIncomplete: 2 of the 3 of gang g are there; alone it would fit on h1');
  });

  it('is told where it fits when all of them do', () => {
    const { summaries, nearest } = explained({ h1: four }, {}, { a: {}, b: {} });
    expect(summaries[0]).toBe('fits on h1, with all of gang g; about to be placed');
    expect(nearest).toEqual([undefined, undefined]);
  });
});

describe('what would make a gang fit', () => {
  it('counts the ends for all of them, and not those that are enough for one', () => {
    const running = { x: {}, y: {}, z: {} }; // h1 is full with two, h2 has room for one
    const { nearest } = explained({ h1: four, h2: four }, running, { a: {}, b: {}, c: {} });
    for (const messages of nearest) {
      expect(messages?.[0]).toMatch(/^when 2 end: instance default\/\w on h\d, instance default\/\w on h\d; for all/);
      expect(messages).toContain('one more host like h1 (4 CPUs, 8 GiB memory), for all of gang g');
    }
  });

  it('names one end where that is enough', () => {
    const { nearest } = explained({ h1: four }, { x: {} }, { a: {}, b: {} });
    expect(nearest[0]?.[0]).toBe('when instance default/x on h1 ends, for all of gang g');
  });

  it('says nothing of ends where even all of them are not enough', () => {
    const { nearest } = explained({ h1: four }, { x: {} }, { a: {}, b: {}, c: {} });
    expect(nearest[0]).toEqual(['one more host like h1 (4 CPUs, 8 GiB memory), for all of gang g']);
  });

  it('offers to resume a host that takes all that are left, and none that takes only some', () => {
    const paused = (cpus: number): TestHost => ({ capacity: { VCPU: cpus, MEMORY_MB: 8192 }, spec: { paused: true } });
    const waiting = { a: {}, b: {}, c: {}, d: {} };
    expect(explained({ h1: four, h2: paused(2) }, {}, waiting).nearest[0]).not.toContain('resume host h2');
    expect(explained({ h1: four, h2: paused(4) }, {}, waiting).nearest[0]).toContain(
      'resume host h2, for all of gang g',
    );
  });

  it('drops a wish of all of them at once', () => {
    const wish = { placement: { hostLabels: { rack: 'r1' } } };
    const { nearest } = explained({ h1: four }, {}, { a: wish, b: wish });
    for (const messages of nearest) expect(messages).toEqual(['drop the label rule rack=r1 in all of gang g']);
  });

  it('is one member alone when the others are placed', () => {
    const cache = testCache([testImage(), ...testHost('h1', four)]);
    const gang = { name: 'g', size: 2 };
    addRecord(cache, testInstance('a', { ...two, gang }, { phase: 'Running', host: 'h1', incarnation: 1 }));
    const again = testInstance('b', { ...two, gang });
    addRecord(cache, again);
    expect(explain(cache, again).summary).toBe('fits on h1; about to be placed');
  });

  it('finds ends in as many racks as they are spread over, though many hosts of the first come before', () => {
    const racks = Array.from({ length: 4 }, (_, rack) =>
      Array.from({ length: 20 }, (_, i) => [`h${rack}-${i}`, rack] as const),
    );
    const hosts = Object.fromEntries(
      racks.flat().map(([name, rack]) => [name, { ...four, labels: { rack: `r${rack}` } }]),
    );
    const running = Object.fromEntries(racks.flat().map(([name]) => [`x-${name}`, { cpus: 4 }]));
    const apart: Partial<InstanceSpec> = {
      placement: { antiAffinity: [{ to: { app: 'g' }, by: 'rack', required: true }] },
    };
    const { nearest } = explained(hosts, running, { a: apart, b: apart, c: apart, d: apart });
    expect(nearest[0]?.[0]).toMatch(/^when 4 end: .* on h0-0, .* on h1-0, .* on h2-0, .* on h3-0; for all of gang g$/);
  });
});
