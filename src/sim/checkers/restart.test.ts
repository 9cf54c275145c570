// Invariant 9 and what else no number has: each on crafted histories, good and bad.

import { describe, expect, it } from 'vitest';
import { testGuest, testHost, testInstance } from '../../core/testing.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Allocation } from '../../core/state/records.ts';
import { rogueLabel } from '../world/rogue-client.ts';
import { testHistory } from '../test-history.ts';
import { refusedChecker } from './refused.ts';
import { restartChecker } from './restart.ts';
import { silenceChecker } from './silence.ts';
import { toldStartChecker } from './told-start.ts';

const [host, provider] = testHost('h1');
const { id } = testInstance('a').metadata;
const bound = (status: Partial<Instance['status']> = {}, spec: Partial<Instance['spec']> = {}): Instance =>
  testInstance('a', spec, { phase: 'Running', host: 'h1', incarnation: 1, ...status });
const held: Allocation = {
  kind: 'allocation',
  consumer: { id, incarnation: 1, project: 'default', name: 'a' },
  host: 'h1',
  amounts: { [provider.id]: { VCPU: 1 } },
  driver: 'fake',
};
const ended = { state: 'stopped', running: false } as const;

describe('invariant 9', () => {
  const running = () => {
    const history = testHistory(restartChecker);
    history.commit(host, provider, bound(), held);
    expect(history.guest('h1', id, { running: false })).toBeUndefined();
    expect(history.guest('h1', id, { running: true, startedAtMs: 7 })).toBeUndefined();
    history.pass(200_000);
    return history;
  };

  it('is content with a guest that dies by itself, and with one that is stopped or removed as asked', () => {
    expect(running().guest('h1', id, { ...ended, stopRequested: false })).toBeUndefined();
    const asked = running();
    asked.commit(bound({}, { powerState: 'stopped' }));
    expect(asked.guest('h1', id, { ...ended, stopRequested: true })).toBeUndefined();
    asked.commit(bound());
    expect(asked.guest('h1', id, { state: 'running', running: true })).toBeUndefined();
  });

  it('sees a guest stopped though it is wanted', () => {
    expect(running().guest('h1', id, { ...ended, stopRequested: true })).toMatch(/stopped while it was wanted to run/);
  });

  it('lets an order come late, not from another life', () => {
    const { commit, guest } = running();
    commit(bound({}, { powerState: 'stopped' }));
    commit(bound());
    expect(guest('h1', id, { ...ended, stopRequested: true })).toBeUndefined();
    const old = testHistory(restartChecker);
    old.commit(host, provider, bound({}, { powerState: 'stopped' }), held);
    old.guest('h1', id, { running: false });
    old.commit(bound());
    old.pass(200_000);
    old.guest('h1', id, { running: true });
    expect(old.guest('h1', id, { ...ended, stopRequested: true })).toMatch(/stopped while/);
  });

  it('sees a running guest removed though it is wanted', () => {
    const { guest, removeGuest, look } = running();
    guest('h1', id, { ...ended, stopRequested: false });
    removeGuest('h1', id);
    expect(look('h1', id)).toMatch(/removed while it was wanted to run/);
  });

  it('sees one life started twice', () => {
    const { guest } = running();
    guest('h1', id, { ...ended, stopRequested: false });
    expect(guest('h1', id, { state: 'running', running: true })).toMatch(/started again, and nobody wanted that/);
  });

  it.each([
    ['was in order when it was stopped', 1_500, undefined],
    ['was not in order any more when it was made', 3_000, /stopped while it was wanted to run/],
  ])('judges a guest of which it hears late by its own time: its end %s', (_, bornMs, fault) => {
    const { commit, pass, guest } = testHistory(restartChecker);
    commit(host, provider, bound(), held);
    pass(1_000);
    commit(bound({}, { powerState: 'stopped' }));
    pass(1_000);
    commit(bound());
    pass(bornMs - 2_000);
    expect(guest('h1', id, { running: true })).toBeUndefined();
    pass(100);
    expect(guest('h1', id, { ...ended, stopRequested: true })).toEqual(
      fault === undefined ? undefined : expect.stringMatching(fault),
    );
  });

  it('keeps apart the lives of an instance of which it hears late', () => {
    const { commit, pass, guest } = testHistory(restartChecker);
    commit(host, provider, bound(), held);
    pass(1_000);
    commit(bound({ host: 'h2', incarnation: 2 }), {
      ...held,
      consumer: { ...held.consumer, incarnation: 2 },
      host: 'h2',
    });
    pass(-500);
    for (const name of ['h1', 'h2']) guest(name, id, { incarnation: name === 'h1' ? 1 : 2, running: true });
    expect(guest('h1', id, { ...ended, stopRequested: true })).toBeUndefined();
    expect(guest('h2', id, { ...ended, stopRequested: true })).toMatch(/incarnation 2 on h2 was stopped while/);
  });

  it('promises nothing of a host whose agent lies', () => {
    const { guest, excused } = running();
    excused.hosts.add('h1');
    expect(guest('h1', id, { ...ended, stopRequested: true })).toBeUndefined();
  });
});

describe('a start that is told', () => {
  const started = () => {
    const history = testHistory(toldStartChecker);
    history.commit(host, provider, bound(), held);
    history.guest('h1', id, { startedAtMs: 7 });
    return history;
  };

  it('was', () => {
    const { commit } = started();
    expect(commit(bound({ guest: testGuest({ startedAtMs: 7 }) }))).toBeUndefined();
    expect(commit(bound({ guest: testGuest({ startedAtMs: 8 }) }))).toMatch(/told to have started at 8/);
  });

  it('was its own, and may have been long ago', () => {
    const { commit, guest } = started();
    guest('h1', id, { incarnation: 2, startedAtMs: 9 });
    expect(commit(bound({ guest: testGuest({ startedAtMs: 7 }) }))).toBeUndefined();
    expect(commit(bound({ guest: testGuest({ startedAtMs: 7 }), incarnation: 2 }))).toMatch(
      /started at 7, when it did not/,
    );
  });

  it('is not held against a host whose agent lies', () => {
    const { commit, excused } = started();
    excused.hosts.add('h1');
    expect(commit(bound({ guest: testGuest({ startedAtMs: 8 }) }))).toBeUndefined();
  });
});

describe('silence', () => {
  const lease = { kind: 'lease', host: 'h1', epoch: 1, renewedAtMs: 0 } as const;
  const silent = testHost('h1', { ready: false })[0];
  const said = {
    ...silent,
    status: {
      ...silent.status,
      conditions: silent.status.conditions.map((each) => ({ ...each, reason: 'AgentSilent' })),
    },
  };

  it.each([
    ['after its time', 60_000, [], undefined],
    ['after its time and an outage', 90_000, [{ fromMs: 1000, toMs: 20_000 }], undefined],
    ['when the store was down for most of it', 70_000, [{ fromMs: 1000, toMs: 65_000 }], 'called silent after 6000 ms'],
  ])('of a host %s', (_, passedMs, silences, fault) => {
    const { commit, pass, deaf } = testHistory(silenceChecker, { offlineAfterMs: 60_000 });
    commit(host, lease);
    pass(passedMs);
    deaf.push(...silences);
    const found = commit(said);
    if (fault === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(fault);
    expect(commit({ ...said, metadata: { ...said.metadata, generation: 2 } })).toBeUndefined();
  });
});

describe('what was refused', () => {
  it('is nowhere', () => {
    const { commit } = testHistory(refusedChecker);
    expect(commit(bound())).toBeUndefined();
    expect(commit(testInstance('b', {}, {}, { labels: { [rogueLabel]: 'yes' } }))).toMatch(/bears what a rogue sent/);
  });
});
