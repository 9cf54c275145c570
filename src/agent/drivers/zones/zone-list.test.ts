import { expect, it } from 'vitest';
import { mayRun, parseZoneList } from './zone-list.ts';

it('reads what zoneadm list -cp prints, with the fields that OmniOS adds', () => {
  const zones = parseZoneList(
    [
      '0:global:running:/::ipkg:shared:0',
      '12:berth-a:running:/rpool/berth/berth-a:4de84a36-8b36-8b04-ae45-93bd0a52f91c:bhyve:excl:7',
      '-:berth-b:installed:/odd\\:place/b:9e0ef0f1-52bd-351d-8b21-7a9dcd7d0a11:bhyve:excl:8',
      '-:berth-c:configured:/rpool/berth/berth-c::bhyve:excl:9',
      'zoneadm: a warning between the lines',
      '',
    ].join('\n'),
  );
  expect([...zones.values()]).toEqual([
    { name: 'global', state: 'running', path: '/' },
    { name: 'berth-a', state: 'running', path: '/rpool/berth/berth-a' },
    { name: 'berth-b', state: 'installed', path: '/odd:place/b' },
    { name: 'berth-c', state: 'configured', path: '/rpool/berth/berth-c' },
  ]);
});

it.each([
  ['configured', false],
  ['incomplete', false],
  ['unavailable', false],
  ['installed', false],
  ['ready', true],
  ['mounted', true],
  ['running', true],
  ['shutting_down', true],
  ['down', true],
  ['some new state', true], // what we do not know may run
])('a zone that is %s may run a guest: %s', (state, expected) => {
  expect(mayRun({ name: 'z', state, path: '/z' })).toBe(expected);
});

it('a zone that is not there runs nothing', () => {
  expect(mayRun(undefined)).toBe(false);
});
