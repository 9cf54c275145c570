import { expect, it } from 'vitest';
import type { Instance } from '../../api/resources/instance.ts';
import { restored } from '../state/guest-phase.ts';
import { keys } from '../state/keys.ts';
import type { Allocation, AnyRecord } from '../state/records.ts';
import { commitPlan, testCache, testContext, testHost, testInstance, testTask, testVolume } from '../testing.ts';
import { verify } from './verify.ts';

const [host, provider] = testHost('h1');
const ready = {
  ...host,
  status: {
    ...host.status,
    epoch: 4,
    conditions: [{ type: 'Ready', status: 'True' as const, reason: 'x', message: 'x', sinceMs: 0 }],
  },
};
const silent = { ...ready, status: { ...ready.status, conditions: [] } };
const onHost = (changes: Partial<Instance['status']> = {}): Instance => {
  const instance = testInstance('a');
  const report = { epoch: 4, sequence: 1 };
  return {
    ...instance,
    status: { ...instance.status, host: 'h1', incarnation: 2, phase: 'Running', report, ...changes },
  };
};
const room = (changes: Partial<Allocation> = {}): Allocation => ({
  kind: 'allocation',
  consumer: { id: onHost().metadata.id, incarnation: 2, project: 'default', name: 'a' },
  host: 'h1',
  amounts: { [provider.id]: { VCPU: 1 } },
  driver: 'fake',
  ...changes,
});
const taskRoom = (id: string): Allocation =>
  room({ consumer: { kind: 'task', id, incarnation: 1, project: 'default', name: 't' } });
const unknown = (instanceId: string, incarnation: number) => ({
  ...ready,
  status: { ...ready.status, unknownGuests: [{ instanceId, incarnation, driver: 'fake', state: 'running' }] },
});
const volume = testVolume('v', {}, { phase: 'Ready', host: 'h1', made: true });
const volumeRoom = room({
  consumer: { kind: 'volume', id: volume.metadata.id, incarnation: 1, project: 'default', name: 'v' },
  amounts: { [provider.id]: { DISK_GB: 10 } },
});
const unknownVolume = { ...ready, status: { ...ready.status, unknownVolumes: [volume.metadata.id] } };
const task = testTask('t');
const all = [ready, provider] as const;
const gone = 'inst_00000000000000000000000000';

const rows: readonly {
  name: string;
  records: readonly AnyRecord[];
  codes: readonly string[];
  repaired?: readonly string[];
}[] = [
  { name: 'nothing of a fleet that fits together', records: [...all, onHost(), room()], codes: [] },
  { name: 'nothing of an instance that waits', records: [...all, testInstance('a')], codes: [] },
  {
    name: 'more held than there is',
    records: [...all, onHost(), room({ amounts: { [provider.id]: { VCPU: 900 } } })],
    codes: ['OverUse'],
  },
  {
    name: 'room of an instance that is no more',
    records: [...all, room()],
    codes: ['RoomLeaked'],
    repaired: ['RoomLeaked'],
  },
  { name: 'room on a host that is no more', records: [room()], codes: ['RoomLeaked'], repaired: [] },
  {
    name: 'room of another incarnation',
    records: [...all, onHost({ incarnation: 3 }), room()],
    codes: ['RoomLeaked', 'RoomMissing'],
    repaired: ['RoomLeaked'],
  },
  { name: 'nothing of a volume that has its room', records: [...all, volume, volumeRoom], codes: [] },
  { name: 'a volume without room', records: [...all, volume], codes: ['RoomMissing'], repaired: ['RoomMissing'] },
  {
    name: 'room of a volume that is no more',
    records: [...all, volumeRoom],
    codes: ['RoomLeaked'],
    repaired: ['RoomLeaked'],
  },
  // The repair orders the host to delete it; until that is done its host has the order, and no room is held.
  {
    name: 'a volume without a record',
    records: [unknownVolume, provider],
    codes: ['UnknownVolume'],
    repaired: ['RoomLeaked'],
  },
  {
    name: 'room of a task that is no more',
    records: [...all, taskRoom(task.metadata.id)],
    codes: ['RoomLeaked'],
    repaired: [],
  },
  { name: 'an instance without room', records: [...all, onHost()], codes: ['RoomMissing'], repaired: [] },
  { name: 'a provider without its host', records: [provider], codes: ['OrphanRecord'], repaired: [] },
  {
    name: 'a lease without its host',
    records: [{ kind: 'lease', host: 'h9', epoch: 1, renewedAtMs: 0 }],
    codes: ['OrphanRecord'],
    repaired: [],
  },
  {
    name: 'a guest that nobody knows',
    records: [unknown(gone, 1), provider],
    codes: ['UnknownGuest'],
    repaired: ['RoomLeaked'],
  },
  {
    name: 'a second guest',
    records: [unknown(onHost().metadata.id, 1), provider, onHost(), room()],
    codes: ['SecondGuest'],
    repaired: ['RoomLeaked'],
  },
  {
    name: 'a guest that the agent has not spoken of',
    records: [...all, onHost({ report: { epoch: 3, sequence: 9 } }), room()],
    codes: ['GuestUnconfirmed'],
    repaired: ['GuestUnconfirmed'],
  },
  {
    name: 'nothing of a guest on a host that is not heard',
    records: [silent, provider, onHost({ report: { epoch: 3, sequence: 9 } }), room()],
    codes: [],
  },
  {
    name: 'an instance that does not begin',
    records: [...all, onHost({ phase: 'Scheduled' }), room()],
    codes: ['Stuck'],
  },
];

it.each(rows)('finds $name', ({ records, codes, repaired }) => {
  const cache = testCache(records);
  const faults = [...verify(cache)].filter((fault) => fault !== undefined);
  expect(faults.map(({ code }) => code).sort()).toEqual([...codes].sort());
  expect(new Set(faults.map(({ key }) => key)).size).toBe(faults.length);
  if (repaired === undefined) return;
  for (const { repair } of faults) {
    const plan = repair?.plan(cache, testContext());
    if (plan) commitPlan(cache, plan);
  }
  expect([...verify(cache)].flatMap((fault) => fault?.code ?? [])).toEqual(repaired);
});

it.each([
  ['has ended', { phase: 'Exited' as const }],
  ['has failed with its host', { phase: 'Failed' as const }],
])('wants no room for what %s', (_, status) => {
  const faults = [...verify(testCache([...all, onHost(status)]))].filter((fault) => fault !== undefined);
  expect(faults).toEqual([]);
});

it('gives back no room on a host that is there again', () => {
  const cache = testCache([room()]);
  const [fault] = [...verify(cache)].filter((each) => each !== undefined);
  commitPlan(cache, { changes: [{ key: keys.host('h1'), ifRevision: 0, value: ready }] });
  expect(fault?.repair?.plan(cache, testContext())).toBeNull();
});

it('offers to take no newer life of an instance that a restore has lost sight of', () => {
  const lost = { type: 'Running', status: 'Unknown' as const, reason: restored, message: 'x', sinceMs: 0 };
  const [other, otherProvider] = testHost('h2');
  const instance = onHost({ host: 'h2', conditions: [lost] });
  const records = [
    unknown(instance.metadata.id, 3),
    provider,
    other,
    otherProvider,
    instance,
    room({ host: 'h2', amounts: {} }),
  ];
  const [fault] = [...verify(testCache(records))].filter((each) => each?.code === 'SecondGuest');
  expect(fault).toBeDefined();
  expect(fault?.repair).toBeUndefined();
});

it('decides a repair on what is then, and does nothing about what has mended itself', () => {
  const cache = testCache([...all, onHost()]);
  const [fault] = [...verify(cache)].filter((each) => each !== undefined);
  commitPlan(cache, { changes: [{ key: keys.allocation(onHost().metadata.id, 2), ifRevision: 0, value: room() }] });
  expect(fault?.repair?.plan(cache, testContext())).toBeNull();
});

it('orders a guest away only by a repair that says that it destroys', () => {
  const [fault] = [...verify(testCache([unknown(gone, 1), provider]))].filter((each) => each !== undefined);
  expect(fault?.repair?.destroys).toBe(true);
});
