import { describe, expect, it } from 'vitest';
import { addRecord, testGroup, testHost } from '../../../testing.ts';
import { requestOf } from '../../request.ts';
import { schedule, summarize } from '../../schedule.ts';
import { fleetWith, member, put, said, scored, told } from './test-neighbours.ts';

const web = { app: 'web' };
const zones = { a1: { zone: 'a' }, b1: { zone: 'b' }, c1: { zone: 'c' }, x1: {} };
const over = (by: string, maxSkew = 1, more: object = {}) => ({ spread: [{ by, maxSkew, required: true, ...more }] });

describe('spread', () => {
  it('keeps the fullest domain ahead of the emptiest by the skew at most', () => {
    const cache = fleetWith(zones);
    for (const name of ['1', '2']) put(cache, member(name, web), 'a1');
    put(cache, member('3', web), 'b1');
    // a 2, b 1, c 0
    const one = member('4', web, over('zone'));
    expect(said(cache, 'spread', one)).toEqual({ a1: 'Spread', b1: 'Spread', c1: 'fits', x1: 'TopologyKeyMissing' });
    expect(told(cache, 'spread', one, 'a1')).toBe(
      '2 of app=web on its zone a and 0 on another zone: one more would be ahead by more than 1',
    );
    expect(said(cache, 'spread', member('4', web, over('zone', 2)))).toMatchObject({ a1: 'Spread', b1: 'fits' });
  });

  it('counts a domain whatever the state of its hosts, unless they are not meant', () => {
    const cache = fleetWith({ a1: { zone: 'a', disk: 'ssd' }, b1: { zone: 'b', disk: 'ssd' } });
    for (const record of testHost('c1', { labels: { zone: 'c', disk: 'ssd' }, ready: false })) addRecord(cache, record);
    for (const record of testHost('d1', { labels: { zone: 'd', disk: 'hdd' } })) addRecord(cache, record);
    for (const [i, host] of ['a1', 'b1'].entries()) put(cache, member(`${i}`, web), host);
    const ssd = (placement: object) => member('4', web, { ...placement, hostLabels: { disk: 'ssd' } });
    expect(said(cache, 'spread', ssd(over('zone')))).toMatchObject({ a1: 'Spread', b1: 'Spread', c1: 'fits' });
    put(cache, member('c', web), 'c1');
    // d has none of them and no suitable disk, so it does not count.
    expect(said(cache, 'spread', ssd(over('zone')))).toMatchObject({ a1: 'fits', b1: 'fits', c1: 'fits' });
    expect(said(cache, 'spread', member('4', web, over('zone')))).toMatchObject({ a1: 'Spread', d1: 'fits' });
  });

  it('sees hosts that come, change their zone and go', () => {
    const cache = fleetWith({ a1: { zone: 'a' }, b1: { zone: 'b' } });
    put(cache, member('1', web), 'a1');
    const asked = member('2', web, over('zone'));
    expect(said(cache, 'spread', asked)).toEqual({ a1: 'Spread', b1: 'fits' });
    for (const record of testHost('b1', { labels: { zone: 'a' } })) addRecord(cache, record);
    expect(said(cache, 'spread', asked)).toEqual({ a1: 'fits', b1: 'fits' });
    for (const record of testHost('c1', { labels: { zone: 'c' } })) addRecord(cache, record);
    expect(said(cache, 'spread', asked)).toEqual({ a1: 'Spread', b1: 'Spread', c1: 'fits' });
    cache.apply([{ key: 'hosts/c1', value: null, revision: cache.revision + 1 }], cache.revision + 1);
    expect(said(cache, 'spread', asked)).toEqual({ a1: 'fits', b1: 'fits' });
  });

  it('is over hosts, too', () => {
    const cache = fleetWith({ h1: {}, h2: {} });
    put(cache, member('1', web), 'h1');
    expect(said(cache, 'spread', member('2', web, over('host')))).toEqual({ h1: 'Spread', h2: 'fits' });
    put(cache, member('2', web), 'h2');
    expect(said(cache, 'spread', member('3', web, over('host')))).toEqual({ h1: 'fits', h2: 'fits' });
  });

  it('waits and names the label when no host has it', () => {
    const cache = fleetWith(zones);
    const lost = member('1', web, over('rack'));
    expect(said(cache, 'spread', lost)['a1']).toBe('TopologyKeyMissing');
    const answer = schedule(cache, requestOf(cache, lost));
    expect(answer.placed ? 'placed' : summarize(answer)).toMatch(
      /^0 of 4 hosts: 4 TopologyKeyMissing: no host has the label "rack"/,
    );
    expect(said(cache, 'spread', member('1', web, over('rack', 1, { required: false })))['a1']).toBe('fits');
  });

  it('not required: even is better', () => {
    const cache = fleetWith(zones);
    for (const name of ['1', '2', '3']) put(cache, member(name, web), 'a1');
    put(cache, member('4', web), 'b1');
    // a 3, b 1, c 0: placing makes them ahead of c by 4, 2, 1; within 1 is best, 4 is worst.
    const scores = scored(cache, 'spread', member('5', web, over('zone', 1, { required: false })));
    expect(scores).toMatchObject({ a1: 0, c1: 100, x1: 0 });
    expect(scores['b1']).toBeCloseTo((100 * 2) / 3, 1);
  });

  it("is a placement group's, too", () => {
    const cache = fleetWith(zones, [testGroup('g', { spread: { by: 'zone', maxSkew: 1, required: true } })]);
    put(cache, member('1', {}, { group: 'g' }), 'a1');
    expect(said(cache, 'spread', member('2', {}, { group: 'g' }))).toMatchObject({ a1: 'Spread', b1: 'fits' });
  });
});
