// The checkers of what is kept over restarts and outages, on crafted histories, good and bad.

import { describe, expect, it } from 'vitest';
import { testHost, testInstance } from '../../core/testing.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Host } from '../../api/resources/host.ts';
import type { Allocation } from '../../core/state/records.ts';
import { testHistory } from '../test-history.ts';
import type { ServerLife } from './checker.ts';
import { diskHeldChecker } from './disk-held.ts';
import { dueChecker } from './due.ts';
import { outageChecker } from './outage.ts';
import { undisturbedChecker } from './undisturbed.ts';

const [host, provider] = testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096, DISK_GB: 50 } });
const id = testInstance('a').metadata.id;
const bound = (status: Partial<Instance['status']> = {}, spec: Partial<Instance['spec']> = {}): Instance =>
  testInstance('a', spec, { phase: 'Running', host: 'h1', incarnation: 1, ...status });
const held = (amounts: Record<string, number>, incarnation = 1): Allocation => ({
  kind: 'allocation',
  consumer: { id, incarnation, project: 'default', name: 'a' },
  host: 'h1',
  amounts: { [provider.id]: amounts },
  driver: 'fake',
});
const everything = { VCPU: 1, MEMORY_MB: 512, DISK_GB: 10 };
const instanceKey = 'instances/default/a';

describe('an undisturbed guest', () => {
  const running = () => {
    const history = testHistory(undisturbedChecker);
    history.commit(host, provider, bound(), held(everything));
    history.guest('h1', id);
    return history;
  };

  it('may fail by itself', () => {
    expect(running().guest('h1', id, { running: false, state: 'failed' })).toBeUndefined();
  });

  it('may be stopped when that is wanted, also later', () => {
    const { commit, guest } = running();
    commit(bound({}, { powerState: 'stopped' }));
    commit(bound({}, { powerState: 'running' }));
    expect(guest('h1', id, { stopRequested: true })).toBeUndefined();
  });

  it('may be stopped by a check that its owner asked for, but not by one of readiness', () => {
    const tcp = { port: 80 };
    for (const [checks, answer] of [
      [{ liveness: { tcp } }, /^$/],
      [{ startup: { tcp } }, /^$/],
      [{ readiness: { tcp } }, /nobody wanted that/],
    ] as const) {
      const { commit, guest } = running();
      commit(bound({}, { checks }));
      expect(guest('h1', id, { stopRequested: true }) ?? '').toMatch(answer);
    }
  });

  it('is not stopped by anybody else', () => {
    expect(running().guest('h1', id, { stopRequested: true })).toMatch(/was stopped, and nobody wanted that/);
  });

  it('may be taken away when its instance is deleted, its room released, or another life has begun', () => {
    const deleted = running();
    deleted.commit({ ...bound(), metadata: { ...bound().metadata, deletionRequestedAtMs: 5 } });
    expect(deleted.takeAway('h1', id)).toBeUndefined();
    const released = running();
    released.commit(`allocations/${id}.1`);
    expect(released.takeAway('h1', id)).toBeUndefined();
    const another = running();
    another.commit(bound({ incarnation: 2 }));
    expect(another.takeAway('h1', id)).toBeUndefined();
  });

  it('is not taken away while it is wanted, though it may be stopped', () => {
    const { commit, takeAway } = running();
    commit(bound({}, { powerState: 'stopped' }));
    expect(takeAway('h1', id)).toMatch(/was taken away, and it was always wanted/);
  });
});

describe('the disk of a guest', () => {
  it('is held as long as it is there', () => {
    const { commit, guest } = testHistory(diskHeldChecker);
    commit(host, provider, bound({}, { diskGiB: 10 }), held(everything));
    expect(guest('h1', id)).toBeUndefined();
    expect(commit(held({ DISK_GB: 10 }))).toBeUndefined();
    expect(commit(held({}))).toMatch(/has a disk of 10 GiB, and 0 are held/);
  });

  it('of a lost host is not the one of its successor, which may have grown', () => {
    const { commit, guest } = testHistory(diskHeldChecker);
    commit(host, provider, bound({ incarnation: 2 }, { diskGiB: 10 }), held({ DISK_GB: 1 }));
    expect(guest('h1', id)).toBeUndefined();
    expect(commit(held({ DISK_GB: 2 }))).toBeUndefined();
  });
});

describe('what is due', () => {
  const failed = bound({ phase: 'Failed', failedAtMs: 0 }, { restartPolicy: 'OnFailure', powerState: 'running' });

  it('may wait its delay and a little', () => {
    const { commit, unrest, overdue, pass } = testHistory(dueChecker, { restartDelayMs: 15_000 });
    commit(host, provider, failed, held(everything));
    unrest();
    pass(30_000);
    unrest();
    expect(overdue()).toBeUndefined();
  });

  it('may not wait for a full pass', () => {
    const { commit, unrest, overdue, pass } = testHistory(dueChecker, { restartDelayMs: 15_000 });
    commit(host, provider, failed, held(everything));
    unrest();
    pass(56_000); // twice its delay, as clocks may disagree, and the time in which no control plane could do it
    unrest();
    expect(overdue()).toMatch(`restart has work to do on ${instanceKey}`);
  });

  it('is forgotten when it is done', () => {
    const { commit, unrest, overdue, pass } = testHistory(dueChecker, { restartDelayMs: 15_000 });
    commit(host, provider, failed, held(everything));
    unrest();
    commit(bound({ phase: 'Pending', incarnation: 1 }));
    pass(60_000);
    unrest();
    expect(overdue()).toBeUndefined();
  });
});

describe('the silence of a host', () => {
  const silent: Host = {
    ...host,
    status: {
      ...host.status,
      conditions: [{ type: 'Ready', status: 'False', reason: 'AgentSilent', message: 'not heard', sinceMs: 0 }],
    },
  };
  const judged = (lives: readonly ServerLife[], atMs: number): string | undefined => {
    const { commit, pass } = testHistory((facts) => outageChecker({ ...facts, serverLives: lives }), {
      offlineAfterMs: 9000,
    });
    commit(host);
    pass(atMs);
    return commit(silent);
  };

  it('is told by who was there to hear it', () => expect(judged([{ startedMs: 1000 }], 20_000)).toBeUndefined());

  it('may be told by one that has just died', () => {
    expect(judged([{ startedMs: 0, endedMs: 19_000 }, { startedMs: 19_500 }], 20_000)).toBeUndefined();
  });

  it('is told by what was, where lives go on after it', () => {
    expect(judged([{ startedMs: 19_000, endedMs: 90_000 }], 20_000)).toMatch(/the longest: 1 s/);
  });

  it('is not told by one that has just begun, after an outage of all', () => {
    expect(judged([{ startedMs: 0, endedMs: 5000 }, { startedMs: 19_000 }], 20_000)).toMatch(
      /host h1 was called silent when no control plane had been there for 9 s/,
    );
  });
});
