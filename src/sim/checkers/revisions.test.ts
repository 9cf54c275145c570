// Invariant 6: revisions, caches, and every watch that anyone has, on crafted histories, good and bad.

import { describe, expect, it } from 'vitest';
import type { Assignment, AssignmentEvent } from '../../api/agent-protocol.ts';
import { assignmentOf } from '../../core/operations/assignment.ts';
import { Cache } from '../../core/state/cache.ts';
import type { Allocation, AnyRecord } from '../../core/state/records.ts';
import { keyOf } from '../../core/state/keys.ts';
import { testHost, testImage, testInstance } from '../../core/testing.ts';
import { testHistory } from '../test-history.ts';
import { createAssignmentCheck } from './assignment-watch.ts';
import { revisionsChecker } from './revisions.ts';
import { batchFault } from './store-watch.ts';

const [host, provider] = testHost('h1');
const web = testInstance('web', {}, { phase: 'Running', host: 'h1', incarnation: 1 });
const other = testInstance('other', {}, { phase: 'Running', host: 'h1', incarnation: 1 });
const held = ({ metadata: { id, name } }: typeof web): Allocation => ({
  kind: 'allocation',
  consumer: { id, incarnation: 1, project: 'default', name },
  host: 'h1',
  amounts: { [provider.id]: { VCPU: 1 } },
  driver: 'fake',
});
const event = (record: AnyRecord, revision: number, value: AnyRecord | null = record) => ({
  key: keyOf(record),
  value,
  revision,
});

describe('revisions', () => {
  it('have no gaps', () => {
    const { commit, commitAt } = testHistory(revisionsChecker);
    expect(commit(host)).toBeUndefined();
    expect(commitAt(3, host)).toMatch(/revision 3 followed 1/);
  });
});

describe('what a control plane hears', () => {
  const begin = () => {
    const history = testHistory(revisionsChecker);
    const cache = new Cache(() => 0);
    history.commit(web);
    history.commit(host);
    history.commit({ ...web, metadata: { ...web.metadata, generation: 2 } });
    history.commit(keyOf(web));
    return { ...history, cache, said: (): string | undefined => history.cached('server-1', cache, keyOf(web)) };
  };

  it('is what was stored at its revision, step by step', () => {
    const { cache, said } = begin();
    cache.apply([event(web, 1)], 1);
    expect(said()).toBeUndefined();
    cache.apply([event(host, 2)], 2);
    expect(said()).toBeUndefined();
    cache.apply([event(web, 3)], 3);
    expect(said()).toBeUndefined();
    cache.apply([event(web, 4, null)], 4);
    expect(said()).toBeUndefined();
  });

  it('may be newer where it wrote itself', () => {
    const { cache, said } = begin();
    cache.apply([event(web, 1)], 1);
    const assumed = cache.assume({ changes: [{ key: keyOf(web), ifRevision: 1, value: web }] });
    if (assumed.ok) cache.confirm(assumed, 3);
    expect(said()).toBeUndefined();
  });

  it.each<[string, (cache: Cache) => void, RegExp]>([
    ['a change it has passed over', (cache) => cache.apply([event(web, 1)], 3), /known at 1; at 3 it was written at 3/],
    ['a deletion it has passed over', (cache) => cache.apply([event(web, 3)], 4), /known at 3; at 4 it was deleted/],
    ['a change that never was', (cache) => cache.apply([event(web, 2)], 2), /known at 2, where it was not written/],
    ['a revival', (cache) => cache.apply([event(web, 4)], 4), /known at 4, where it was deleted/],
    ['a revision to come', (cache) => cache.apply([event(web, 1)], 9), /is at 9; the store is at 4/],
  ])('may not be %s', (_, do_, fault) => {
    const { cache, said } = begin();
    do_(cache);
    expect(said()).toMatch(fault);
  });

  it('is looked at whole now and then, and at rest', () => {
    const { cache, servers, recount, unrest } = begin();
    servers.push({ name: 'server-1', cache });
    cache.apply([event(web, 1)], 2);
    expect(recount()).toMatch(/never said that hosts.h1 is unknown at 2; it was written at 2/);
    cache.apply([event(host, 2), event(web, 4, null)], 4);
    expect(recount()).toBeUndefined();
    expect(unrest()).toEqual([]);
  });
});

describe('a watch of the store', () => {
  const commits = [
    { revision: 1, events: [event(web, 1)].map(({ key }) => ({ key, before: null, after: web })) },
    {
      revision: 2,
      events: [
        { key: keyOf(web), before: web, after: null },
        { key: keyOf(host), before: null, after: host },
      ],
    },
  ];
  const w1 = event(web, 1);
  const w2 = event(web, 2, null);
  const h2 = event(host, 2);

  it.each([
    ['everything', 0, [w1, w2, h2], undefined],
    ['from the middle', 1, [w2, h2], undefined],
    ['half a revision', 1, [w2], 'nothing came in the place of hosts/h1 at 2'],
    ['with a gap', 0, [w2, h2], 'at 2 came in the place of instances/default/web at 1'],
    ['twice', 0, [w1, w1], 'at 1 came once more'],
    ['out of order', 1, [h2, w2], 'hosts/h1 at 2 came in the place of'],
    ['a deletion as a change', 1, [event(web, 2), h2], 'came in the place of'],
  ])('that brings %s', (_, seen, batch, fault) => {
    const last = batch.at(-1)?.revision ?? 0;
    const found = batchFault(commits, { prefix: '', seen, last }, batch);
    if (fault === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(fault);
  });
});

describe('a stream of assignments', () => {
  const { state, commit } = testHistory(revisionsChecker);
  commit(testImage(), host, provider, web, held(web));
  commit(other, held(other));
  commit(keyOf(held(web)));
  const of = (instance: typeof web, revision: number): Assignment => ({
    ...assignmentOf({ key: '', value: held(instance), revision }, { key: '', value: instance, revision }, undefined),
    revision,
  });
  const sync = (revision: number, ...assignments: Assignment[]): AssignmentEvent => ({
    type: 'sync',
    revision,
    assignments,
  });
  const ping = (revision: number): AssignmentEvent => ({ type: 'ping', revision });
  const put = (assignment: Assignment): AssignmentEvent => ({ type: 'put', revision: assignment.revision, assignment });
  const drop: AssignmentEvent = { type: 'drop', revision: 3, instanceId: web.metadata.id, incarnation: 1 };

  it.each<[string, AssignmentEvent[], string | undefined]>([
    ['tells all', [sync(1, of(web, 1)), ping(1), put(of(other, 2)), ping(2), drop, ping(3)], undefined],
    ['is ahead of its word', [sync(1, of(web, 1), of(other, 2)), ping(1), drop, ping(3)], undefined],
    ['repeats itself', [sync(1, of(web, 1)), ping(1), put(of(web, 1)), ping(1)], undefined],
    ['begins with a change', [put(of(web, 1))], 'does not begin with its only sync'],
    ['begins twice', [sync(1, of(web, 1)), sync(1, of(web, 1))], 'does not begin with its only sync'],
    ['leaves out what is held', [sync(2, of(web, 1))], 'has held room since 2, and at 2 is not told'],
    ['forgets a change', [sync(1, of(web, 1)), ping(1), drop, ping(3)], 'has held room since 2'],
    ['forgets a release', [sync(2, of(web, 1), of(other, 2)), ping(2), ping(3)], 'was released at 3'],
    ['drops what it never told', [sync(0), ping(0), drop], 'was dropped, and never told'],
    ['revives', [sync(1, of(web, 1)), ping(1), drop, put(of(web, 1))], 'came again after it was dropped'],
    ['goes back', [sync(1, of(web, 2)), ping(1), put(of(web, 1))], 'went back from 2'],
    ['goes back as a whole', [sync(2, of(other, 2), of(web, 1)), ping(2), ping(1)], 'went back from 2'],
  ])('that %s', (_, events, fault) => {
    const check = createAssignmentCheck({ state, host: 'h1' });
    const faults = events.flatMap((each) => check(each) ?? []);
    if (fault === undefined) expect(faults).toEqual([]);
    else expect(faults[0]).toContain(fault);
  });
});
