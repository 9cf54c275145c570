import { describe, expect, it } from 'vitest';
import { testGroup } from '../../../testing.ts';
import { fleetWith, member, put, said, scored, told } from './test-neighbours.ts';

const zones = { h1: { zone: 'a' }, h2: { zone: 'a' }, h3: { zone: 'b' }, h4: {} };
const away = (by: string, more: object = {}) => ({
  antiAffinity: [{ to: { app: 'db' }, by, required: true, ...more }],
});

describe('anti-affinity', () => {
  it('refuses hosts with those it names', () => {
    const cache = fleetWith(zones);
    put(cache, member('db', { app: 'db' }), 'h1');
    const web = member('web', { app: 'web' }, away('host'));
    expect(said(cache, 'anti-affinity', web)).toEqual({ h1: 'AntiAffinity', h2: 'fits', h3: 'fits', h4: 'fits' });
    expect(told(cache, 'anti-affinity', web, 'h1')).toBe('1 of app=db on it, which it must be away from');
  });

  it('refuses their whole domain by a label, and hosts of which nobody knows the domain', () => {
    const cache = fleetWith(zones);
    put(cache, member('db', { app: 'db' }), 'h1');
    const web = member('web', { app: 'web' }, away('zone'));
    expect(said(cache, 'anti-affinity', web)).toEqual({
      h1: 'AntiAffinity',
      h2: 'AntiAffinity',
      h3: 'fits',
      h4: 'TopologyKeyMissing',
    });
    expect(told(cache, 'anti-affinity', web, 'h2')).toBe('1 of app=db on its zone a, which it must be away from');
  });

  it('holds whoever comes first: a placed one keeps away those that it wants to be away from', () => {
    const cache = fleetWith(zones);
    put(cache, member('web', { app: 'web' }, away('zone')), 'h1');
    const db = member('db', { app: 'db' });
    expect(said(cache, 'anti-affinity', db)).toEqual({
      h1: 'AntiAffinity',
      h2: 'AntiAffinity',
      h3: 'fits',
      h4: 'fits',
    });
    expect(told(cache, 'anti-affinity', db, 'h1')).toBe(
      'an instance on its zone a must be away from app=db, which match this one',
    );
    expect(said(cache, 'anti-affinity', member('other', { app: 'x' }))['h1']).toBe('fits');
  });

  it('says so when no host has the label', () => {
    const cache = fleetWith(zones);
    const web = member('web', { app: 'web' }, away('rack'));
    expect(new Set(Object.values(said(cache, 'anti-affinity', web)))).toEqual(new Set(['TopologyKeyMissing']));
    expect(told(cache, 'anti-affinity', web, 'h1')).toMatch(/^no host has the label "rack"/);
  });

  it('not required: the fewer are near, the better', () => {
    const cache = fleetWith({ h1: {}, h2: {}, h3: {} });
    for (const name of ['a', 'b']) put(cache, member(name, { app: 'db' }), 'h1');
    put(cache, member('c', { app: 'db' }), 'h2');
    const web = member('web', {}, away('host', { required: false, weight: 60 }));
    // 60 / (1 + members there)
    expect(scored(cache, 'anti-affinity', web)).toEqual({ h1: 20, h2: 30, h3: 60 });
  });

  it("is a placement group's, too", () => {
    const cache = fleetWith(zones, [testGroup('g', { antiAffinity: { by: 'zone', required: true } })]);
    put(cache, member('a', {}, { group: 'g' }), 'h3');
    expect(said(cache, 'anti-affinity', member('b', {}, { group: 'g' }))['h3']).toBe('AntiAffinity');
    expect(said(cache, 'anti-affinity', member('b', {}, { group: 'g' }))['h1']).toBe('fits');
  });
});
