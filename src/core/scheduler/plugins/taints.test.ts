import { describe, expect, it } from 'vitest';
import type { Taint, Toleration } from '../../../api/resources/host-rules.ts';
import { addRecord, testCache, testHost, testImage, testInstance } from '../../testing.ts';
import { fleetOf } from '../fleet.ts';
import { requestOf } from '../request.ts';
import { engineOf } from '../schedule.ts';
import { pointsOn, verdictsOn } from './test-rule.ts';

const ci: Taint = { key: 'reserved', value: 'ci', effect: 'NoSchedule' };
const soft: Taint = { key: 'old', effect: 'PreferNoSchedule' };

describe('taints', () => {
  const rows: [string, Toleration[], string][] = [
    ['keep away who does not tolerate them', [], 'HostTainted'],
    ['are tolerated by key and value', [{ key: 'reserved', value: 'ci' }], 'fits'],
    ['are tolerated by key alone', [{ key: 'reserved' }], 'fits'],
    ['are tolerated by who tolerates everything', [{}], 'fits'],
    ['are not tolerated by another value', [{ key: 'reserved', value: 'db' }], 'HostTainted'],
    ['are not tolerated by another key', [{ key: 'old' }], 'HostTainted'],
    ['are not tolerated for another effect', [{ key: 'reserved', effect: 'PreferNoSchedule' }], 'HostTainted'],
  ];
  for (const [name, tolerations, expected] of rows) {
    it(name, () => {
      const { h1 = '' } = verdictsOn('taints', { h1: { spec: { taints: [ci] } } }, { placement: { tolerations } });
      expect(h1.replace(/:.*/, '')).toBe(expected);
    });
  }
  it('that are soft refuse nobody, but put the host last', () => {
    const hosts = { a: { spec: { taints: [soft] } }, b: {} };
    expect(verdictsOn('taints', hosts, {})).toEqual({ a: 'fits', b: 'fits' });
    expect(pointsOn('soft-taints', hosts, {})).toEqual({ a: 0, b: 100 });
    expect(pointsOn('soft-taints', hosts, { placement: { tolerations: [{ key: 'old' }] } })).toEqual({
      a: 100,
      b: 100,
    });
  });
  it('are seen as soon as they come and go, also by those who asked before', () => {
    const cache = testCache([testImage(), ...testHost('a'), ...testHost('b')]);
    const best = () => {
      const choice = engineOf(cache).choose(requestOf(cache, testInstance('web')));
      return choice && fleetOf(cache).names[choice.slot];
    };
    expect([best(), best(), best()]).toEqual(['a', 'a', 'a']);
    addRecord(cache, testHost('a', { spec: { taints: [soft] } })[0]);
    expect([best(), best(), best()]).toEqual(['b', 'b', 'b']);
    addRecord(cache, testHost('a')[0]);
    expect([best(), best()]).toEqual(['a', 'a']);
  });
});
