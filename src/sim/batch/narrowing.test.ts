import { describe, expect, it } from 'vitest';
import { flagsOf, knownMisfortunes, misfortunesOf, narrowed } from './narrowing.ts';
import { drawnBy } from '../simulate.ts';

describe('narrowing', () => {
  const scenario = drawnBy(3, 'small');

  it('leaves what is not named as it was drawn', () => expect(narrowed(scenario)).toEqual(scenario));

  it('leaves out what is named, and makes happen what is asked for', () => {
    const less = narrowed(scenario, { without: misfortunesOf(scenario) });
    expect(misfortunesOf(less)).toEqual([]);
    expect(less.faults.map(({ kind }) => kind)).toEqual(scenario.faults.map(({ kind }) => kind));
    expect(misfortunesOf(narrowed(less, { with: ['store-slow', 'host-paused'] })).sort()).toEqual([
      'host-paused',
      'store-slow',
    ]);
  });

  it('has a restore in the end, or none', () => {
    const restoring = narrowed(scenario, { with: ['restored'] });
    expect(restoring).toEqual({ ...scenario, restored: true });
    expect(misfortunesOf(restoring)).toContain('restored');
    expect(narrowed(restoring, { without: ['restored'] })).toEqual({ ...scenario, restored: false });
    expect(knownMisfortunes()).toContain('restored');
  });

  it('is told as the flags that say it', () => {
    expect(
      flagsOf({ with: ['partition'], without: ['a', 'b'], hosts: 2, servers: 1, tenants: 3, stormMs: 12_000 }),
    ).toBe(' --with partition --without a,b --hosts 2 --servers 1 --tenants 3 --storm 12');
  });
});
