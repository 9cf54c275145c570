// Each checker on crafted histories, good and bad: one that never fires is worthless, one that always fires too.

import { describe, expect, it } from 'vitest';
import { testGuest, testHost, testImage, testInstance } from '../../core/testing.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Allocation, AnyRecord } from '../../core/state/records.ts';
import { Cache } from '../../core/state/cache.ts';
import { encodeRecord } from '../../core/state/codec.ts';
import { createHistory } from '../history.ts';
import { keyLabel } from '../intents.ts';
import { testHistory } from '../test-history.ts';
import { acceptedChecker } from './accepted.ts';
import { allocationChecker } from './allocation.ts';
import { cacheFaults } from './cache-faults.ts';
import { capacityChecker } from './capacity.ts';
import { churnChecker } from './churn.ts';
import { copiesChecker } from './copies.ts';
import { eligibleChecker } from './eligible.ts';
import { idempotencyChecker } from './idempotency.ts';
import { leftoversChecker } from './leftovers.ts';
import { monotonicChecker } from './monotonic.ts';
import { createWatchCheck } from './watch.ts';

const [host, provider] = testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096 } });
const condition = (type: string, reason: string, message = 'said why') => ({
  type,
  status: 'False' as const,
  reason,
  message,
  sinceMs: 0,
});
const bound = (name: string, status: Partial<Instance['status']> = {}, spec: Partial<Instance['spec']> = {}) =>
  testInstance(name, spec, { phase: 'Running', host: 'h1', incarnation: 1, ...status });
const idOf = (name: string): string => testInstance(name).metadata.id;
const instanceKey = (name: string): string => `instances/default/${name}`;
const allocationKey = (name: string, incarnation = 1): string => `allocations/${idOf(name)}.${incarnation}`;
const allocation = (name: string, amounts: Record<string, number>, incarnation = 1): Allocation => ({
  kind: 'allocation',
  consumer: { id: idOf(name), incarnation, project: 'default', name },
  host: 'h1',
  amounts: { [provider.id]: amounts },
  driver: 'fake',
});

describe('invariant 1', () => {
  it('lets a host be filled to the last bit, emptied and filled again', () => {
    const { commit } = testHistory(capacityChecker);
    expect(commit(host, provider)).toBeUndefined();
    expect(commit(allocation('a', { VCPU: 3 }), allocation('b', { VCPU: 1 }))).toBeUndefined();
    expect(commit(allocationKey('a'), allocation('c', { VCPU: 3 }))).toBeUndefined();
  });

  it('sees one claim too many', () => {
    const { commit } = testHistory(capacityChecker);
    commit(host, provider);
    commit(allocation('a', { VCPU: 3, MEMORY_MB: 1 }));
    expect(commit(allocation('b', { VCPU: 2, MEMORY_MB: 1 }))).toMatch(/host h1 holds 5 VCPU of 4/);
  });

  it('counts reserve and ratio: floor((4 - 1) x 1.5) = 4', () => {
    const { commit } = testHistory(capacityChecker);
    const inventory = { ...provider.inventories['VCPU'], reserved: 1, allocationRatio: 1.5 };
    commit({ ...provider, inventories: { VCPU: { total: 4, minUnit: 1, maxUnit: 4, stepSize: 1, ...inventory } } });
    expect(commit(allocation('a', { VCPU: 4 }))).toBeUndefined();
    expect(commit(allocation('b', { VCPU: 1 }))).toMatch(/5 VCPU of 4/);
  });

  it('sees what is held of a host that is no more, or of a class it does not have', () => {
    const { commit } = testHistory(capacityChecker);
    commit(provider);
    expect(commit(allocation('a', { CUSTOM_GPU: 1 }))).toMatch(/1 CUSTOM_GPU of 0/);
  });

  it('lets an operator shrink a host below its use, but no claim make that worse', () => {
    const { commit } = testHistory(capacityChecker);
    commit(provider);
    commit(allocation('a', { VCPU: 3 }), allocation('b', { VCPU: 1 }));
    const [, smaller] = testHost('h1', { capacity: { VCPU: 2, MEMORY_MB: 4096 } });
    expect(commit({ ...smaller, generation: 2 })).toBeUndefined();
    expect(commit(allocationKey('b'))).toBeUndefined();
    expect(commit(allocation('c', { VCPU: 1 }))).toMatch(/4 VCPU of 2/);
  });

  it('does not blame a claim on a host that registered as a larger one and back within one commit', () => {
    const { commit } = testHistory(capacityChecker);
    const atEpoch = (epoch: number) => ({ ...host, status: { ...host.status, epoch } });
    commit(host, provider);
    expect(commit(atEpoch(3), { ...provider, generation: 4 }, allocation('a', { VCPU: 6 }))).toBeUndefined();
    expect(commit(atEpoch(4), { ...provider, generation: 5 }, allocation('b', { VCPU: 1 }))).toMatch(/7 VCPU of 4/);
  });
});

describe('invariant 2', () => {
  const both = { instanceId: idOf('a'), hosts: ['h1', 'h2'], atMs: 1 };

  it('sees an exclusive instance run twice', () => {
    const { commit, guest, doubleStarts } = testHistory(copiesChecker);
    commit(bound('a', {}, { exclusive: true }));
    expect(guest('h1', idOf('a'))).toBeUndefined();
    doubleStarts.push(both);
    expect(guest('h2', idOf('a'))).toMatch(/exclusive .* runs on h1 and h2/);
  });

  it('lets another run twice for a while, not for good', () => {
    const { commit, guest, doubleStarts, unrest } = testHistory(copiesChecker);
    commit(bound('a'));
    guest('h1', idOf('a'));
    doubleStarts.push(both);
    expect(guest('h2', idOf('a'))).toBeUndefined();
    expect(unrest()).toEqual([expect.stringContaining('runs on h1 and on h2')]);
  });

  it('sees a guest started twice on one host', () => {
    const { guest, doubleStarts } = testHistory(copiesChecker);
    doubleStarts.push({ ...both, hosts: ['h1'] });
    expect(guest('h1', idOf('a'))).toMatch(/started twice on h1/);
  });

  it('sees a host that is back and not ready, or tells of unknown guests', () => {
    const { commit, unrest } = testHistory(copiesChecker);
    const unknownGuests = [{ instanceId: idOf('x'), incarnation: 1, driver: 'fake', state: 'running' }];
    commit(testHost('h1', { ready: false })[0], testHost('h2', { status: { unknownGuests } })[0]);
    expect(unrest()).toEqual([expect.stringContaining('not ready'), expect.stringContaining('unknown guest')]);
  });
});

describe('invariant 3', () => {
  it.each([
    ['runs', bound('a'), undefined],
    ['is stopped as asked', bound('a', { phase: 'Stopped' }, { powerState: 'stopped' }), undefined],
    ['has exited', bound('a', { phase: 'Exited' }), undefined],
    [
      'has failed with a reason',
      bound('a', { phase: 'Failed', conditions: [condition('Running', 'DiskFull')] }),
      undefined,
    ],
    [
      'waits and says why',
      testInstance('a', {}, { conditions: [condition('Scheduled', 'Unschedulable', '0 of 0 hosts: ')] }),
      undefined,
    ],
    [
      'is stopped, should run, and says that there is no room where its disk is',
      bound('a', { phase: 'Stopped', conditions: [condition('Scheduled', 'Unschedulable', 'no room')] }),
      undefined,
    ],
    ['is stopped though it should run', bound('a', { phase: 'Stopped' }), 'is stopped though it should run'],
    ['runs though it should be stopped', bound('a', {}, { powerState: 'stopped' }), 'runs though'],
    ['has failed without a reason', bound('a', { phase: 'Failed' }), 'without a reason'],
    [
      'has failed and should be restarted',
      bound('a', { phase: 'Failed', conditions: [condition('Running', 'DiskFull')] }, { restartPolicy: 'OnFailure' }),
      'is not restarted',
    ],
    [
      'is failed for a host that is back',
      bound('a', { phase: 'Failed', conditions: [condition('Running', 'HostLost')] }),
      'host that is back',
    ],
    ['waits and does not say why', testInstance('a'), 'without saying why'],
    ['never gets on', bound('a', { phase: 'Starting' }), 'stays Starting'],
    [
      'is never gone',
      testInstance('a', {}, { phase: 'Deleting' }, { deletionRequestedAtMs: 1 }),
      'is being deleted and does not go',
    ],
  ])('at rest, an instance that %s', (_, instance, fault) => {
    const { commit, unrest } = testHistory(acceptedChecker);
    commit(instance);
    expect(unrest()).toEqual(fault === undefined ? [] : [expect.stringContaining(fault)]);
  });

  it('sees an instance wait for room that is there', () => {
    const { commit, unrest, overdue, pass } = testHistory(acceptedChecker);
    const conditions = [condition('Scheduled', 'Unschedulable', '0 of 1 host: 1 InsufficientVcpu')];
    commit(testImage(), host, provider, testInstance('a', { cpus: 3 }, { conditions }));
    expect(unrest()).toEqual([expect.stringContaining('waits though it fits on h1')]);
    pass(15_000);
    expect(overdue()).toBeUndefined();
    pass(15_000);
    expect(overdue()).toMatch(/waits for 30 s/);
    commit(allocation('b', { VCPU: 2 }));
    expect(unrest()).toEqual([]);
    expect(overdue()).toBeUndefined();
  });

  it('sees a stopped instance wait for room that is there where its disk is', () => {
    const { commit, unrest } = testHistory(acceptedChecker);
    const conditions = [condition('Scheduled', 'Unschedulable', 'no room')];
    const stopped = bound('a', { phase: 'Stopped', assigned: { VCPU: 3, DISK_GB: 9 }, conditions });
    commit(host, provider, allocation('b', { VCPU: 2 }), allocation('a', {}), stopped);
    expect(unrest()).toEqual([]);
    commit(allocationKey('b'));
    expect(unrest()).toEqual([expect.stringContaining('waits though it fits on h1')]);
  });

  it('sees an accepted create that is lost', () => {
    const { intents, unrest } = testHistory(acceptedChecker);
    intents.creates.set('k', { key: 'k', tenant: 't', outcome: 'accepted', instanceId: idOf('a') });
    expect(unrest()).toEqual([expect.stringContaining('is lost')]);
    intents.deletesAsked.add(idOf('a'));
    expect(unrest()).toEqual([]);
  });

  it('sees a request that was never answered, and a deletion that came to nothing', () => {
    const { intents, unrest, commit } = testHistory(acceptedChecker);
    commit(bound('a'));
    intents.creates.set('k', { key: 'k', tenant: 't', outcome: 'open', instanceId: undefined });
    intents.deletesAsked.add(idOf('a'));
    intents.deletesAccepted.add(idOf('a'));
    expect(unrest()).toEqual([expect.stringContaining('answered'), expect.stringContaining('still there')]);
  });

  it('sees an instance go, or begin to, that nobody deletion requested', () => {
    const deleting = testInstance('a', {}, { phase: 'Deleting' }, { deletionRequestedAtMs: 1 });
    const first = testHistory(acceptedChecker);
    first.commit(bound('a'));
    expect(first.commit(instanceKey('a'))).toMatch(/without a request/);
    const second = testHistory(acceptedChecker);
    second.commit(bound('a'));
    expect(second.commit(deleting)).toMatch(/without a request/);
    const asked = testHistory(acceptedChecker);
    asked.intents.deletesAsked.add(idOf('a'));
    asked.commit(bound('a'));
    expect(asked.commit(deleting)).toBeUndefined();
    expect(asked.commit(instanceKey('a'))).toBeUndefined();
  });

  it('sees a deletion that was forgotten', () => {
    const { intents, commit } = testHistory(acceptedChecker);
    intents.deletesAsked.add(idOf('a'));
    commit(testInstance('a', {}, { phase: 'Deleting' }, { deletionRequestedAtMs: 1 }));
    expect(commit(bound('a'))).toMatch(/was forgotten/);
  });
});

describe('invariant 4', () => {
  const made = (name: string) => testInstance(name, {}, {}, { labels: { [keyLabel]: 'k' } });

  it('sees one key make two instances, also when the first is gone', () => {
    const { commit } = testHistory(idempotencyChecker);
    expect(commit(made('a'))).toBeUndefined();
    expect(commit({ ...made('a'), status: { ...made('a').status, phase: 'Deleting' } })).toBeUndefined();
    commit(instanceKey('a'));
    expect(commit(made('b'))).toMatch(/key k made/);
  });

  it('sees it, too, where one goes and another of its name comes in one commit', () => {
    const { commit, recount } = testHistory(idempotencyChecker);
    commit(testInstance('b'));
    commit(made('a'));
    expect(commit({ ...made('b'), metadata: { ...made('b').metadata, id: 'inst_new' } })).toMatch(/key k made/);
    expect(recount()).toMatch(/never saw/);
  });
});

describe('invariant 5', () => {
  it('is content with room that is held while a guest is there, and released after', () => {
    const { commit, guest, removeGuest, unrest } = testHistory(allocationChecker);
    expect(commit(bound('a'), allocation('a', { VCPU: 1 }))).toBeUndefined();
    expect(guest('h1', idOf('a'))).toBeUndefined();
    expect(unrest()).toEqual([]);
    removeGuest('h1', idOf('a'));
    expect(commit(allocationKey('a'), instanceKey('a'))).toBeUndefined();
    expect(unrest()).toEqual([]);
  });

  it('sees room released under a guest', () => {
    const { commit, guest } = testHistory(allocationChecker);
    commit(allocation('a', { VCPU: 1 }));
    guest('h1', idOf('a'), { state: 'stopped', running: false });
    expect(commit(allocationKey('a'))).toMatch(/holds no room/);
  });

  it('sees a guest without room, and one of another incarnation than the room is for', () => {
    const { commit, guest } = testHistory(allocationChecker);
    expect(guest('h1', idOf('b'))).toMatch(/holds no room/);
    commit(allocation('a', { VCPU: 1 }, 2));
    expect(guest('h1', idOf('a'), { incarnation: 1 })).toMatch(/holds no room/);
    expect(guest('h1', idOf('a'), { incarnation: 2 })).toBeUndefined();
  });

  it('lets a dead guest hold its disk only, not a running one', () => {
    const { commit, guest } = testHistory(allocationChecker);
    commit(allocation('a', { VCPU: 1, DISK_GB: 5 }));
    guest('h1', idOf('a'), { state: 'failed', running: false });
    expect(commit(allocation('a', { DISK_GB: 5 }))).toBeUndefined();
    expect(guest('h1', idOf('a'), { state: 'running', running: true })).toMatch(/holds no CPU/);
  });

  it('sees room that is held a second time after its release', () => {
    const { commit } = testHistory(allocationChecker);
    commit(allocation('a', { VCPU: 1 }));
    commit(allocationKey('a'));
    expect(commit(allocation('a', { VCPU: 1 }))).toMatch(/released and is held again/);
  });

  it.each([
    ['of an instance that is no more', [allocation('a', { VCPU: 1 })], 'which is no more'],
    [
      'of an earlier incarnation',
      [bound('a', { incarnation: 2 }), allocation('a', { VCPU: 1 }), allocation('a', { VCPU: 1 }, 2)],
      'incarnation 2 on h1 now',
    ],
    [
      'of a failed instance that is more than its disk',
      [bound('a', { phase: 'Failed' }), allocation('a', { VCPU: 1 })],
      'more than its disk',
    ],
    ['missing for a bound instance', [bound('a')], 'holds no room there'],
  ])('sees, at rest, room %s', (_, records, fault) => {
    const { commit, unrest } = testHistory(allocationChecker);
    commit(...records);
    expect(unrest()).toEqual([expect.stringContaining(fault)]);
  });
});

describe('invariant 7', () => {
  const heard = (sequence: number, epoch = 1, changes: Partial<Instance['status']> = {}) =>
    bound('a', { report: { epoch, sequence }, guest: testGuest(), ...changes });
  const sent = (sequence: number, epoch = 1, incarnation = 1) => ({
    host: 'h1',
    epoch,
    report: { instanceId: idOf('a'), incarnation, sequence, observedGeneration: 1, guest: testGuest() },
  });
  const begin = () => {
    const history = testHistory(monotonicChecker);
    history.commit(host, provider, bound('a', { incarnation: 1, restartCount: 2, observedGeneration: 1 }));
    return history;
  };

  it.each([
    ['incarnation', bound('a', { incarnation: 0, restartCount: 2, observedGeneration: 1 })],
    ['restartCount', bound('a', { restartCount: 1, observedGeneration: 1 })],
    ['observedGeneration', bound('a', { restartCount: 2 })],
  ])('sees %s fall', (name, instance) => {
    expect(begin().commit(instance)).toContain(`${name} of instance a fell`);
  });

  it('sees an epoch fall, and a provider written without its generation growing', () => {
    const { commit } = begin();
    expect(commit({ ...host, status: { ...host.status, epoch: 0 } })).toMatch(/epoch of host h1 fell/);
    expect(commit({ ...provider, traits: ['NEW'] })).toMatch(/generation of provider/);
  });

  it('takes a report once, in order, from the present session', () => {
    const { commit, report } = begin();
    report(sent(1));
    report(sent(2));
    const status = { restartCount: 2, observedGeneration: 1 };
    expect(commit(heard(1, 1, status))).toBeUndefined();
    expect(commit(heard(2, 1, status))).toBeUndefined();
    expect(commit(heard(1, 1, status))).toMatch(/was taken after 1\/2/);
  });

  it('sees a report taken after its session was over', () => {
    const { commit, report } = begin();
    report(sent(1));
    commit({ ...host, status: { ...host.status, epoch: 2 } });
    expect(commit(heard(1, 1, { restartCount: 2, observedGeneration: 1 }))).toMatch(/session 2 of h1 had begun/);
  });

  it('sees what a host said of another incarnation, or never said, recorded', () => {
    const { commit, report } = begin();
    report(sent(1));
    expect(commit(heard(1, 1, { incarnation: 2, restartCount: 2, observedGeneration: 1 }))).toMatch(/never said that/);
    expect(commit(heard(9, 1, { incarnation: 2, restartCount: 2, observedGeneration: 1 }))).toMatch(/never said that/);
  });
});

describe('invariant 8', () => {
  it('is content when every running instance has its guest', () => {
    const { commit, guest, unrest } = testHistory(leftoversChecker);
    commit(bound('a'), bound('b', { phase: 'Stopped' }));
    guest('h1', idOf('a'));
    guest('h1', idOf('b'), { state: 'stopped', running: false });
    expect(unrest()).toEqual([]);
  });

  it.each([
    ['a guest without an instance', [], ['h1', 'x', {}], 'no more'],
    ['a guest on a host its instance is not on', [bound('a', { phase: 'Stopped' })], ['h2', 'a', {}], 'is left'],
    ['a guest of an earlier life', [bound('a', { phase: 'Stopped', incarnation: 2 })], ['h1', 'a', {}], 'is left'],
    ['a guest that should not run', [bound('a', { phase: 'Failed' })], ['h1', 'a', {}], 'runs; its instance is Failed'],
  ] as const)('sees %s', (_, records, [on, name, changes], fault) => {
    const { commit, guest, unrest } = testHistory(leftoversChecker);
    commit(host, ...records);
    guest(on, idOf(name), changes);
    expect(unrest()).toEqual([expect.stringContaining(fault)]);
  });

  it('sees a running instance without a guest', () => {
    const { commit, unrest } = testHistory(leftoversChecker);
    commit(bound('a'));
    expect(unrest()).toEqual([expect.stringContaining('no guest runs there')]);
  });
});

describe('what a control plane believes', () => {
  const stored = createHistory();
  stored.record({ ok: true, revision: 1 }, [{ key: instanceKey('a'), value: encodeRecord(bound('a')) }]);
  const faults = (cache: Cache): string[] => [...cacheFaults(stored.state, cache, 'server-1')];
  const put = (name: string, revision: number) => [{ key: instanceKey(name), value: bound(name), revision }];

  it('is what is stored', () => {
    const cache = new Cache(() => 0);
    cache.apply(put('a', 1), 1);
    expect(faults(cache)).toEqual([]);
  });

  it('may not lack anything, be older, hold more, or wait for ever', () => {
    const cache = new Cache(() => 0);
    expect(faults(cache)).toEqual([expect.stringContaining('at no revision; it is at 1')]);
    cache.apply(put('a', 1), 1);
    cache.apply(put('b', 2), 2);
    expect(faults(cache)).toEqual([expect.stringContaining('it is not there')]);
    cache.apply([{ key: instanceKey('b'), value: null, revision: 3 }], 3);
    cache.assume({ changes: [{ key: instanceKey('a'), ifRevision: 1, value: null }] });
    expect(faults(cache)).toEqual([expect.stringContaining('still waits')]);
  });
});

describe('where an instance is bound', () => {
  const waiting = testInstance('a');
  const ruled = (spec: Partial<Host['spec']>): Host => ({ ...host, spec: { ...host.spec, ...spec } });
  const paused = ruled({ paused: true });

  it.each<[string, readonly AnyRecord[], string | undefined]>([
    ['is there and ready', [host], undefined],
    ['is paused', [paused], 'which is paused'],
    ['is not ready', [testHost('h1', { ready: false })[0]], 'which is not ready'],
    ['is not there', [], 'which is not there'],
    ["is its own project's", [ruled({ dedicatedTo: 'default' })], undefined],
    ['is dedicated to another project', [ruled({ dedicatedTo: 'ci' })], 'which is dedicated to project ci'],
    ['is dedicated', [ruled({ dedicated: true })], 'which is dedicated'],
    ['is better avoided', [ruled({ taints: [{ key: 'x', effect: 'PreferNoSchedule' }] })], undefined],
    ['is tainted', [ruled({ taints: [{ key: 'x', effect: 'NoSchedule' }] })], 'which has the taint x'],
    ['has its last place', [ruled({ instancesMax: 1 }), allocation('b', {})], undefined],
    [
      'has too many',
      [ruled({ instancesMax: 1 }), allocation('b', {}), allocation('c', {})],
      'which has 2 instances now, and may have 1',
    ],
  ])('a host that %s', (_, records, fault) => {
    const { commit } = testHistory(eligibleChecker);
    commit(waiting, ...records);
    const said = commit(bound('a'));
    if (fault === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(fault);
  });

  it('may be paused in the same commit, and later', () => {
    const { commit } = testHistory(eligibleChecker);
    commit(waiting, host);
    expect(commit(bound('a'), paused)).toBeUndefined();
    expect(commit(bound('a', { phase: 'Exited' }))).toBeUndefined();
  });
});

describe('churn', () => {
  it('is much writing of one thing in a short time, not in a long one', () => {
    const { commit, pass } = testHistory(churnChecker);
    const write = (count: number, everyMs: number) =>
      Array.from({ length: count }, () => {
        pass(everyMs);
        return commit(host);
      });
    expect(write(300, 500).every((fault) => fault === undefined)).toBe(true);
    expect(write(100, 10).at(-1)).toMatch(/hosts\/h1 was written \d+ times within 5 s/);
  });
});

describe('invariant 6', () => {
  const commits = [
    { revision: 1, events: [{ key: instanceKey('a'), before: null, after: bound('a') }] },
    { revision: 2, events: [{ key: 'hosts/h1', before: null, after: host }] },
    {
      revision: 3,
      events: [
        { key: instanceKey('a'), before: bound('a'), after: null },
        { key: instanceKey('b'), before: null, after: bound('b') },
      ],
    },
  ];
  const a1 = { type: 'put', revision: 1, name: 'a' } as const;
  const a3 = { type: 'delete', revision: 3, name: 'a' } as const;
  const b3 = { type: 'put', revision: 3, name: 'b' } as const;
  const mark = (revision: number) => ({ type: 'bookmark', revision }) as const;

  it.each([
    ['everything, with bookmarks', 0, [mark(0), a1, mark(2), a3, b3, mark(3)], undefined],
    ['from the middle', 1, [a3, b3], undefined],
    ['with a gap', 0, [a3], 'in the place of put of a at 1'],
    ['twice', 0, [a1, a1], 'in the place of delete of a at 3'],
    ['out of order', 1, [b3], 'in the place of delete of a at 3'],
    ['with a bookmark too early', 0, [a1, mark(3)], 'a bookmark of revision 3 came before'],
    ['with more than there is', 1, [a3, b3, b3], 'in the place of nothing'],
  ])('a watch that shows changes %s', (_, after, lines, fault) => {
    const check = createWatchCheck(commits, after);
    const faults = lines.flatMap((line) => check(line) ?? []);
    expect(faults).toEqual(fault === undefined ? [] : [expect.stringContaining(fault)]);
  });

  it('goes on as the history grows', () => {
    const growing = commits.slice(0, 1);
    const check = createWatchCheck(growing, 0);
    expect(check(a1)).toBeUndefined();
    expect(check(mark(1))).toBeUndefined();
    growing.push(...commits.slice(1));
    expect(check(a3)).toBeUndefined();
  });
});
