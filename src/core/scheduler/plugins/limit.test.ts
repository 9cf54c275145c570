import { describe, expect, it } from 'vitest';
import { testGroup } from '../../testing.ts';
import { fleetWith, member, put, said, told } from './neighbours/test-neighbours.ts';

const web = { app: 'web' };

describe('limit', () => {
  it('refuses hosts that have as many as there may be', () => {
    const cache = fleetWith({ h1: {}, h2: {} });
    for (const name of ['a', 'b']) put(cache, member(name, web), 'h1');
    put(cache, member('c', web), 'h2');
    const asked = member('d', web, { maxPerHost: 2 });
    expect(said(cache, 'limit', asked)).toEqual({ h1: 'LimitReached', h2: 'fits' });
    expect(told(cache, 'limit', asked, 'h1')).toBe('2 of app=web are on it, at most 2 are allowed');
  });

  it('counts those with all of its labels, of its own project', () => {
    const cache = fleetWith({ h1: {} });
    put(cache, member('a', { app: 'web', tier: 'x' }), 'h1');
    put(cache, { ...member('b', web), metadata: { ...member('b', web).metadata, project: 'other' } }, 'h1');
    expect(said(cache, 'limit', member('d', { app: 'web', tier: 'y' }, { maxPerHost: 1 }))).toEqual({ h1: 'fits' });
    expect(said(cache, 'limit', member('d', web, { maxPerHost: 1 }))).toEqual({ h1: 'LimitReached' });
  });

  it("is a placement group's, too", () => {
    const cache = fleetWith({ h1: {}, h2: {} }, [testGroup('g', { maxPerHost: 1 })]);
    put(cache, member('a', {}, { group: 'g' }), 'h1');
    expect(said(cache, 'limit', member('b', {}, { group: 'g' }))).toEqual({ h1: 'LimitReached', h2: 'fits' });
    expect(said(cache, 'limit', member('c', {}))).toEqual({ h1: 'fits', h2: 'fits' });
  });
});
