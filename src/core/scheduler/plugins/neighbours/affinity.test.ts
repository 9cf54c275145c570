import { describe, expect, it } from 'vitest';
import { addRecord, testGroup } from '../../../testing.ts';
import { requestOf } from '../../request.ts';
import { placedMessage, readPlacedMessage, schedule, summarize } from '../../schedule.ts';
import { fleetWith, member, put, said, scored, told } from './test-neighbours.ts';

const zones = { h1: { zone: 'a' }, h2: { zone: 'a' }, h3: { zone: 'b' }, h4: {} };
const near = (app: string, by = 'host', more: object = {}) => ({
  affinity: [{ to: { app }, by, required: true, ...more }],
});

describe('affinity', () => {
  it('refuses hosts without those it names', () => {
    const cache = fleetWith(zones);
    put(cache, member('db', { app: 'db' }), 'h1');
    expect(said(cache, 'affinity', member('web', {}, near('db')))).toEqual({
      h1: 'fits',
      h2: 'Affinity',
      h3: 'Affinity',
      h4: 'Affinity',
    });
    const byZone = member('web', {}, near('db', 'zone'));
    expect(said(cache, 'affinity', byZone)).toEqual({
      h1: 'fits',
      h2: 'fits',
      h3: 'Affinity',
      h4: 'TopologyKeyMissing',
    });
    expect(told(cache, 'affinity', byZone, 'h3')).toBe('none of app=db on its zone b, which it must be near');
  });

  it('is left out of the number of hosts that fit, and that is told', () => {
    const cache = fleetWith(zones);
    put(cache, member('db', { app: 'db' }), 'h1');
    const request = requestOf(cache, member('web', {}, near('db')));
    for (let again = 0; again < 2; again++) {
      const placed = schedule(cache, request);
      const message = placed.placed ? placedMessage(placed) : '';
      expect(message).toMatch(/^placed on h1: best of 4 that fit but for their neighbours, of 4 \(score /);
      expect(readPlacedMessage(message)).toMatchObject({ hosts: 4, hostsFit: undefined });
    }
  });

  it('lets the first of a group that wants to be near itself go anywhere that has the label', () => {
    const cache = fleetWith(zones);
    expect(said(cache, 'affinity', member('a', { app: 'web' }, near('web', 'zone')))).toEqual({
      h1: 'fits',
      h2: 'fits',
      h3: 'fits',
      h4: 'TopologyKeyMissing',
    });
  });

  it('waits for others, and says for whom', () => {
    const cache = fleetWith({ h1: {} });
    const web = member('web', { app: 'web' }, near('db'));
    expect(said(cache, 'affinity', web)).toEqual({ h1: 'AffinityNoMember' });
    expect(told(cache, 'affinity', web, 'h1')).toBe('none of app=db, which it must be near, is on any host');
    addRecord(cache, member('db', { app: 'db' }));
    expect(told(cache, 'affinity', web, 'h1')).toMatch(/not placed yet: db waits for a place$/);
  });

  it('names the circle of those that wait for each other', () => {
    const cache = fleetWith({ h1: {} });
    const web = member('web', { app: 'web' }, near('db'));
    addRecord(cache, web);
    addRecord(cache, member('db', { app: 'db' }, near('cache')));
    addRecord(cache, member('cache', { app: 'cache' }, near('web')));
    expect(said(cache, 'affinity', web)).toEqual({ h1: 'AffinityCycle' });
    const circle =
      'they wait for each other to be placed first: this one for app=db, db for app=cache, cache for app=web';
    expect(told(cache, 'affinity', web, 'h1')).toContain(circle);
    const answer = schedule(cache, requestOf(cache, web));
    expect(answer.placed ? 'placed' : summarize(answer)).toContain(`1 AffinityCycle: ${circle}`);
  });

  it('not required: hosts near them are better, each rule by its weight', () => {
    const cache = fleetWith(zones);
    put(cache, member('db', { app: 'db' }), 'h1');
    put(cache, member('x', { app: 'x' }), 'h3');
    const web = member(
      'web',
      {},
      {
        affinity: [
          { to: { app: 'db' }, by: 'zone', required: false, weight: 60 },
          { to: { app: 'x' }, by: 'host', required: false },
          { to: { app: 'none' }, by: 'host', required: false, weight: 40 },
        ],
      },
    );
    // Of 160 in all, without the 40 that match no instance: 60 and 100, as shares of 100.
    expect(scored(cache, 'affinity', web)).toEqual({ h1: 37.5, h2: 37.5, h3: 62.5, h4: 0 });
  });

  it("is a placement group's, too", () => {
    const cache = fleetWith(zones, [testGroup('g', { affinity: { by: 'zone', required: true } })]);
    expect(said(cache, 'affinity', member('a', {}, { group: 'g' }))['h3']).toBe('fits');
    put(cache, member('a', {}, { group: 'g' }), 'h1');
    expect(said(cache, 'affinity', member('b', {}, { group: 'g' }))['h3']).toBe('Affinity');
  });
});
