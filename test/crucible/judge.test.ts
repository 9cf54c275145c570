// The crucible's own judgement: a record that is not as it must be has to be seen, and one that is has to pass.

import { describe, expect, it } from 'vitest';
import { createFakeWorld } from '../../src/agent/drivers/fake/world.ts';
import { systemClock } from '../../src/base/system.ts';
import type { Instance } from '../../src/api/resources/instance.ts';
import { testGuest, testHost, testInstance } from '../../src/core/testing.ts';
import { encodeRecord } from '../../src/core/state/codec.ts';
import { defaultPolicy } from '../../src/core/state/context.ts';
import { keyOf } from '../../src/core/state/keys.ts';
import type { Allocation, AnyRecord } from '../../src/core/state/records.ts';
import type { Commit } from '../../src/sim/history.ts';
import { createIntents } from '../../src/sim/intents.ts';
import type { FaultInterval } from './faults.ts';
import {
  commitsOf,
  differenceOf,
  cleanFailOvers,
  judgeBoots,
  judgeFailOvers,
  judgeLostHosts,
  judgeWatches,
  restartFault,
} from './judge.ts';
import { RunRecord } from './record.ts';

const fault = (target: string, fromMs: number, toMs: number): FaultInterval => ({
  kind: 'some',
  targets: [target],
  fromMs,
  toMs,
});

describe('watches', () => {
  const instance = testInstance('a');
  const commits: Commit[] = [
    { revision: 1, events: [{ key: keyOf(instance), before: null, after: instance }] },
    { revision: 2, events: [{ key: keyOf(instance), before: instance, after: null }] },
  ];
  const put = { type: 'put', revision: 1, name: 'a' } as const;
  const gone = { type: 'delete', revision: 2, name: 'a' } as const;
  const bookmark = { type: 'bookmark', revision: 2 } as const;
  it.each([
    ['every change, once and in order', [put, gone, bookmark], 0],
    ['a change that was skipped', [gone], 1],
    ['a change that came twice', [put, put], 1],
    ['a bookmark before its changes', [put, bookmark], 1],
  ] as const)('%s', (_, lines, faults) => {
    const watch = { by: 'w', server: 's', after: 0, epoch: 'e', lines: [...lines], end: '' };
    expect(judgeWatches([watch], commits)).toHaveLength(faults);
  });
});

describe('the log at the end', () => {
  const write = (revision: number, name: string) => {
    const record = testInstance(name);
    return { key: keyOf(record), value: encodeRecord(record), revision };
  };
  const followed = commitsOf([write(1, 'a'), write(1, 'b'), write(2, 'c')]);
  it.each([
    ['as it was followed', [write(1, 'a'), write(1, 'b'), write(2, 'c')], undefined],
    ['without its last revision', [write(1, 'a'), write(1, 'b')], '2 revisions were followed, 1 are in the log'],
    ['with another revision', [write(1, 'a'), write(2, 'c')], 'revision 1 is not in the log'],
  ])('%s', (_, log, fault) => {
    const found = differenceOf(followed, commitsOf(log));
    if (fault === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(fault);
  });
});

describe('a fail-over', () => {
  it.each([
    ['in time', 5_000, 0],
    ['too late', 10_001, 1],
    ['that never came', undefined, 1],
  ] as const)('%s', (_, tookMs, faults) => {
    const failOver = {
      how: 'kill-leader',
      leader: 'cp1',
      atMs: 0,
      term: 1,
      ...(tookMs === undefined ? {} : { tookMs }),
    };
    expect(judgeFailOvers([failOver])).toHaveLength(faults);
  });

  it.each([
    ['nothing else happens', [], true],
    ['something happens to a host', [fault('h1', 50_000, 60_000)], true],
    ['the store was away long before', [fault('store', 10_000, 20_000)], true],
    ['the store is away', [fault('store', 52_000, 53_000)], false],
    ['one other control plane is away', [fault('cp2', 52_000, 53_000)], true],
    ['both others are, or were just now', [fault('cp2', 52_000, 53_000), fault('cp3', 40_000, 45_000)], false],
  ] as const)('counts or not: %s', (_, faults, clean) => {
    const failOver = { how: 'kill-leader', leader: 'cp1', atMs: 50_000, term: 1, tookMs: 6_000 };
    expect(cleanFailOvers([failOver], faults, ['cp1', 'cp2', 'cp3'])).toEqual(clean ? [failOver] : []);
  });
});

describe('a lost host', () => {
  it.each([
    ['that was cut off', fault('h1', 80_000, 99_000), 0],
    ['to which nothing had happened', fault('h2', 80_000, 99_000), 1],
    ['long after its fault was mended', fault('h1', 10_000, 20_000), 1],
    ['of a store that was away', fault('store', 80_000, 99_000), 1],
  ])('%s', (_, made, faults) => {
    expect(judgeLostHosts([{ host: 'h1', atMs: 100_000 }], [made], 12_000)).toHaveLength(faults);
  });
});

describe('a restart', () => {
  const failed = (reason: string): Instance => {
    const instance = testInstance('a');
    const condition = { type: 'Running', status: 'False', reason, message: 'so', sinceMs: 0 } as const;
    return { ...instance, status: { ...instance.status, phase: 'Failed', conditions: [condition] } };
  };
  const restarted = (before: Instance): Commit => {
    const after: Instance = { ...before, status: { ...before.status, phase: 'Pending', restartCount: 1 } };
    return { revision: 1, events: [{ key: keyOf(before), before, after }] };
  };
  it('for the loss of a host passes', () => expect(restartFault(restarted(failed('HostLost')))).toBeUndefined());
  it('of a guest that died is seen', () =>
    expect(restartFault(restarted(failed('HypervisorExited')))).toContain('started anew'));
});

// ── the record, with a false store and a true world ─────────────────────────────────────────────────────────────────

function recording() {
  const world = createFakeWorld({ clock: systemClock });
  const record = new RunRecord({ world, hosts: ['h1'], intents: createIntents(), policy: defaultPolicy });
  const take = (revision: number, ...records: readonly (AnyRecord | string)[]): void =>
    record.take(
      records.map((each) =>
        typeof each === 'string'
          ? { key: each, value: null, revision }
          : { key: keyOf(each), value: encodeRecord(each), revision },
      ),
    );
  const addGuest = (instanceId: string): void => {
    const guest = world.addGuest({
      ...{ host: 'h1', instanceId, incarnation: 1, imageName: 'tiny', state: 'preparing' },
      ...{ running: false, created: false, stopRequested: false, ready: false, boots: 0, ports: [], phases: [] },
      console: '',
    });
    world.startGuest(guest);
  };
  return { world, record, take, addGuest };
}

const allocation: Allocation = {
  kind: 'allocation',
  consumer: { id: 'i-1', incarnation: 1, project: 'default', name: 'a' },
  host: 'h1',
  amounts: { p1: { VCPU: 1 } },
  driver: 'fake',
};

describe('the record', () => {
  it('sees a gap in the log', () => {
    const { record, take } = recording();
    take(1, testInstance('a'));
    take(3, testInstance('b'));
    expect(record.violations).toContainEqual({ invariant: 6, message: 'the log has revision 3 after 1' });
  });

  it('sees a revision that comes again', () => {
    const { record, take } = recording();
    take(1, testInstance('a'));
    take(1, testInstance('a'));
    expect(record.violations).toContainEqual(expect.objectContaining({ invariant: 6 }));
  });

  it('sees an instance go for which nobody has asked', () => {
    const { record, take } = recording();
    take(1, testInstance('a'));
    take(2, 'instances/default/a');
    expect(record.violations).toContainEqual(expect.objectContaining({ invariant: 3 }));
  });

  it('sees room released under a guest that was there all the time, and nothing in one that may have come since', async () => {
    const { record, take, addGuest, world } = recording();
    take(1, allocation);
    addGuest('i-1');
    take(2, keyOf(allocation));
    expect(record.violations.filter(({ invariant }) => invariant === 5)).toEqual([]); // the time of its arrival is unknown
    const known = recording();
    known.take(1, allocation);
    known.addGuest('i-1');
    known.record.sight(systemClock.monotonicMs() + 1, 1);
    known.take(2, keyOf(allocation));
    expect(known.record.violations.filter(({ invariant }) => invariant === 5)).toHaveLength(1);
    for (const each of [world, known.world]) each.crashHost('h1');
  });

  it('sees a guest that is left at rest', () => {
    const { record, addGuest, world } = recording();
    addGuest('i-1');
    expect([...record.unrest()]).toContainEqual(expect.objectContaining({ invariant: 8 }));
    world.crashHost('h1');
  });
});

describe('the record of a guest that its owner wanted to run', () => {
  const instance = testInstance('a', {}, { phase: 'Running', host: 'h1', incarnation: 1 });
  const { id } = instance.metadata;
  const room: Allocation = { ...allocation, consumer: { ...allocation.consumer, id } };
  const stopped: Instance = { ...instance, spec: { ...instance.spec, powerState: 'stopped' } };
  const running = () => {
    const told = recording();
    told.take(1, instance, room);
    told.addGuest(id);
    const [guest] = told.world.guests();
    if (guest === undefined) throw new Error('the guest was added just now');
    const stop = (): void => {
      guest.stopRequested = true;
      told.world.endGuest(guest, 'killed');
    };
    return { ...told, guest, stop, found: () => told.record.violations.filter(({ invariant }) => invariant === 9) };
  };

  it('says nothing before the log has been read past its change', () => {
    const { record, take, stop, found } = running();
    record.sight(systemClock.monotonicMs(), 1);
    stop();
    take(2, stopped);
    record.end();
    expect(found()).toEqual([]);
  });

  it('sees it stopped', () => {
    const { record, stop, found, take } = running();
    stop();
    record.sight(systemClock.monotonicMs() + 1, 2);
    expect(found()).toEqual([]);
    take(2, testInstance('b'));
    const messages = found().map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining('was stopped while it was wanted to run')); // restart
    expect(messages).toContainEqual(expect.stringContaining('was stopped, and nobody wanted that')); // undisturbed
  });

  it('sees it stopped before that was permitted, also when all of the log is read later', () => {
    const { stop, found, take } = running();
    stop();
    const lease = { kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: systemClock.nowMs() + 1 } as const;
    take(2, lease);
    take(3, stopped);
    expect(found()).toHaveLength(2);
  });

  it('sees it removed, at the end of a log that could not be followed', () => {
    const { record, world, guest, found } = running();
    world.deleteGuest(guest);
    record.end();
    const messages = found().map(({ message }) => message);
    expect(messages).toContainEqual(expect.stringContaining('was removed while it was wanted to run'));
    expect(messages).toContainEqual(expect.stringContaining('was taken away, and it was always wanted'));
  });

  it('sees a start that is told and never was, and knows those that were as soon as they are', () => {
    const { world, take, guest, found } = running();
    const started = (startedAtMs: number): Instance => ({
      ...instance,
      status: { ...instance.status, guest: testGuest({ startedAtMs }) },
    });
    take(2, started(guest.startedAtMs ?? 0));
    expect(found()).toEqual([]);
    take(3, started(7));
    expect(found()).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('told to have started at 7') }),
    );
    world.crashHost('h1');
  });
});

describe('the record of a silent host', () => {
  it.each([
    ['that nobody had been there to hear', 0, 1],
    ['that a control plane had not heard for long', 60_000, 0],
  ])('%s', (_, livedMs, faults) => {
    const { record, take } = recording();
    const end = record.onServerStart();
    const nowMs = systemClock.nowMs() + livedMs;
    const [host] = testHost('h1');
    const condition = { type: 'Ready', status: 'False', reason: 'AgentSilent', message: 'so', sinceMs: nowMs } as const;
    take(1, host);
    take(2, { ...host, status: { ...host.status, conditions: [condition] } });
    const found = record.violations.filter(({ message }) => message.includes('no control plane had been there'));
    expect(found).toHaveLength(faults);
    end();
  });
});

describe('boots', () => {
  it.each([
    ['one that was stopped and started by its owner', 3, 2, 0],
    ['one that nobody touched', 1, 2, 1],
  ])('of %s', (_, generation, boots, faults) => {
    const { world, record, take, addGuest } = recording();
    const instance = testInstance('a');
    take(1, { ...instance, metadata: { ...instance.metadata, generation } });
    addGuest(instance.metadata.id);
    const [guest] = world.guests();
    if (guest) guest.boots = boots;
    expect(judgeBoots(world.guests(), record.history.state)).toHaveLength(faults);
    world.crashHost('h1');
  });
});
