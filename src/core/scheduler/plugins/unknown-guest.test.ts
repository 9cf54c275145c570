import { expect, it } from 'vitest';
import type { Host } from '../../../api/resources/host.ts';
import { addRecord, testCache, testHost, testImage, testInstance } from '../../testing.ts';
import type { Cluster } from '../../state/records.ts';
import { fleetOf } from '../fleet.ts';
import { said, told } from './neighbours/test-neighbours.ts';

const web = testInstance('web', { cpus: 1 });

function hostWith(name: string, ...guests: readonly { instanceId: string; incarnation: number }[]): Host {
  const [host] = testHost(name, {
    status: { unknownGuests: guests.map((guest) => ({ ...guest, driver: 'fake', state: 'running' })) },
  });
  return host;
}

it('refuses hosts that have another life of the instance, and no others', () => {
  const { id } = web.metadata;
  const cache = testCache([
    testImage(),
    web,
    hostWith('older', { instanceId: id, incarnation: 0 }),
    hostWith('newer', { instanceId: id, incarnation: 1 }, { instanceId: id, incarnation: 2 }),
    hostWith('the-next', { instanceId: id, incarnation: 1 }),
    hostWith('of-others', { instanceId: 'inst_other', incarnation: 7 }),
  ]);
  const verdicts = { older: 'UnknownGuest', newer: 'UnknownGuest', 'the-next': 'fits', 'of-others': 'fits' };
  expect(said(cache, 'unknown-guest', web)).toEqual(verdicts);
  expect(told(cache, 'unknown-guest', web, 'newer')).toMatch('incarnation 2');
});

it('follows what the host tells', () => {
  const { id } = web.metadata;
  const cache = testCache([testImage(), web, hostWith('h1', { instanceId: id, incarnation: 5 })]);
  fleetOf(cache); // updated from now on
  expect(said(cache, 'unknown-guest', web)).toEqual({ h1: 'UnknownGuest' });
  addRecord(cache, hostWith('h1'));
  expect(said(cache, 'unknown-guest', web)).toEqual({ h1: 'fits' });
  addRecord(cache, hostWith('h1', { instanceId: id, incarnation: 6 }));
  expect(said(cache, 'unknown-guest', web)).toEqual({ h1: 'UnknownGuest' });
});

it('waits after a restore until the host has told its guests; what is new need not', () => {
  const told = testHost('told', { status: { guestsTold: true } })[0];
  const old = { ...web, metadata: { ...web.metadata, createdAtMs: 500 } };
  const young = testInstance('young', { cpus: 1 });
  const cluster: Cluster = {
    kind: 'cluster',
    recordsVersion: 1,
    createdAtMs: 0,
    tokenSecret: '',
    operatorToken: '',
    epoch: 'e2',
    restored: { atMs: 2_000, backupRevision: 7, newestInstanceMs: 1_000 },
  };
  const later = { ...young, metadata: { ...young.metadata, createdAtMs: 1_001 } };
  const cache = testCache([testImage(), cluster, old, later, told, hostWith('silent')]);
  expect(said(cache, 'unknown-guest', old)).toEqual({ told: 'fits', silent: 'GuestsNotTold' });
  expect(said(cache, 'unknown-guest', later)).toEqual({ told: 'fits', silent: 'fits' });
});
