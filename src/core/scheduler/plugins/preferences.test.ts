import { describe, expect, it } from 'vitest';
import type { Preference } from '../../../api/resources/host-rules.ts';
import { pointsOn } from './test-rule.ts';

const hosts = { ssd: { labels: { disk: 'ssd', zone: 'a' } }, hdd: { labels: { disk: 'hdd', zone: 'a' } }, none: {} };
const points = (...preferences: Preference[]) => pointsOn('preferences', hosts, { placement: { preferences } });

describe('preferences', () => {
  it('a weight is so many points above who has nothing: 100 + 30', () => {
    expect(points({ weight: 30, key: 'disk', operator: 'In', values: ['ssd'] })).toEqual({
      ssd: 130,
      hdd: 100,
      none: 100,
    });
  });
  it('a negative weight takes points away', () => {
    expect(points({ weight: -30, key: 'zone', operator: 'Exists' })).toEqual({ ssd: 70, hdd: 70, none: 100 });
  });
  it('they add up, to 100 either way at most', () => {
    const zone: Preference = { weight: 80, key: 'zone', operator: 'Exists' };
    const ssd: Preference = { weight: 80, key: 'disk', operator: 'In', values: ['ssd'] };
    expect(points(zone, ssd)).toEqual({ ssd: 200, hdd: 180, none: 100 });
  });
});
