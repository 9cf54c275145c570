import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { testCache, testContext, testImage, testInstance } from '../testing.ts';
import { Cache, type StoredEvent } from './cache.ts';
import { eventChange } from './events.ts';
import { keyOf } from './keys.ts';
import { type Plan, unchanged } from './plan.ts';
import type { Allocation } from './records.ts';

const key = keyOf(testInstance('web'));
const write = (ifRevision: number, name = 'web'): Plan => ({
  changes: [{ key, ifRevision, value: testInstance(name) }],
});

const allocationOn = (host: string, cpus: number): Allocation => ({
  kind: 'allocation',
  consumer: { id: 'inst_1', incarnation: 1, project: 'default', name: 'web' },
  host,
  amounts: { [host]: { VCPU: cpus } },
  driver: 'fake',
});

describe('the cache', () => {
  it('shows a change of its own at once, and to users only when it is durable', () => {
    const cache = testCache([]);
    const assumed = cache.assume(write(0));
    expect(cache.get('instance', key)).toBeDefined();
    expect(cache.committed('instance', key)).toBeUndefined();
    if (assumed.ok) cache.confirm(assumed, 7);
    expect(cache.committed('instance', key)?.revision).toBe(7);
  });

  it('knows of a new event only when it is durable, by its own commit or by the store, whichever comes first', () => {
    const event = eventChange(testInstance('web'), { reason: 'Scheduled', message: 'placed' }, testContext());
    const shown = (cache: Cache) => [...cache.listCommitted('event')].map(({ revision }) => revision);
    for (const first of ['own', 'store']) {
      const cache = testCache([]);
      const assumed = cache.assume({ changes: [event] });
      expect([...cache.list('event')]).toEqual([]);
      if (first === 'store') cache.apply([{ key: event.key, value: event.value, revision: 7 }], 7);
      if (assumed.ok) cache.confirm(assumed, 7);
      expect(shown(cache)).toEqual([7]);
      if (first === 'own') cache.apply([{ key: event.key, value: event.value, revision: 7 }], 7);
      expect(shown(cache)).toEqual([7]);
    }
    const cache = testCache([]);
    const assumed = cache.assume({ changes: [event] });
    if (assumed.ok) cache.forget(assumed);
    expect(shown(cache)).toEqual([]);
  });

  it('names what is gone only until the Plan that deletes it has an outcome', () => {
    const cache = testCache([testInstance('web')]);
    const gone = () => [...cache.goneUncommitted('instance')].map(({ metadata }) => metadata.name);
    const remove = () =>
      cache.assume({
        changes: [{ key, ifRevision: cache.get('instance', key)?.revision ?? 0, value: null }],
      });
    const failed = remove();
    expect(gone()).toEqual(['web']);
    if (failed.ok) cache.forget(failed);
    expect(gone()).toEqual([]);
    const made = remove();
    if (made.ok) cache.confirm(made, 7);
    expect(gone()).toEqual([]);
  });

  it('is as new as what it has written, and no newer for what it has only asked', () => {
    const cache = testCache([]);
    cache.apply([], 3);
    const made = cache.assume(write(0));
    if (made.ok) cache.confirm(made, 7);
    expect(cache).toMatchObject({ revision: 3, newestRevision: 7 });
    const asked = cache.assume(unchanged({ key, revision: 7 }));
    if (asked.ok) cache.confirm(asked, 12);
    expect(cache).toMatchObject({ revision: 3, newestRevision: 7 });
  });

  it('remembers a revision of its own until the events have passed it', () => {
    const cache = testCache([]);
    cache.noteOwn(3);
    expect([2, 3].map((revision) => cache.isOwn(revision))).toEqual([false, true]);
    cache.apply([], 2);
    expect(cache.isOwn(3)).toBe(true);
    cache.apply([], 4);
    expect(cache.isOwn(3)).toBe(false);
  });

  it('is as before when a change is forgotten', () => {
    const cache = testCache([testInstance('web')]);
    const revision = cache.committed('instance', key)?.revision ?? 0;
    const plan: Plan = { changes: [{ key, ifRevision: revision, value: null }] };
    const assumed = cache.assume(plan);
    expect(cache.get('instance', key)).toBeUndefined();
    if (assumed.ok) cache.forget(assumed);
    expect(cache.get('instance', key)?.revision).toBe(revision);
    expect(cache.instanceById(testInstance('web').metadata.id)?.key).toBe(key);
  });

  it('refuses a Plan whose condition no longer holds, and names the key', () => {
    const cache = testCache([testInstance('web')]);
    expect(cache.assume(write(0))).toEqual({ ok: false, key });
  });

  it('takes no Plan that changes a key twice', () => {
    const [change] = write(0).changes;
    const twice: Plan = { changes: change ? [change, change] : [] };
    expect(() => testCache([]).assume(twice)).toThrow(`changes ${key} twice`);
    expect(() => {
      const cache = testCache([]);
      cache.assume(write(0));
      const ifRevision = cache.get('instance', key)?.revision ?? 0;
      cache.assume({ changes: [...write(ifRevision).changes, ...write(ifRevision).changes] });
    }).toThrow(`changes ${key} twice`);
  });

  it('gives several own Plans of one commit their order: the last one wins', () => {
    const cache = testCache([]);
    const first = cache.assume(write(0, 'web'));
    const second: Plan = { changes: [{ key, ifRevision: cache.get('instance', key)?.revision ?? 0, value: null }] };
    const removed = cache.assume(second);
    if (first.ok) cache.confirm(first, 3);
    if (removed.ok) cache.confirm(removed, 3);
    expect(cache.get('instance', key)).toBeUndefined();
    cache.apply([{ key, value: null, revision: 3 }], 3);
    expect(cache.committed('instance', key)).toBeUndefined();
  });

  it('does not let an older event bring back what it has deleted since', () => {
    const cache = testCache([testInstance('web')]);
    const revision = cache.committed('instance', key)?.revision ?? 0;
    const plan: Plan = { changes: [{ key, ifRevision: revision, value: null }] };
    const assumed = cache.assume(plan);
    if (assumed.ok) cache.confirm(assumed, revision + 5);
    cache.apply([{ key, value: testInstance('web'), revision: revision + 2 }], revision + 2);
    expect(cache.get('instance', key)).toBeUndefined();
  });

  it('does not bring back what another control plane deleted before it heard of its own commit', () => {
    const cache = testCache([]);
    const plan = write(0);
    const assumed = cache.assume(plan);
    cache.apply([{ key, value: testInstance('web'), revision: 4 }], 4);
    cache.apply([{ key, value: null, revision: 5 }], 5);
    if (assumed.ok) cache.confirm(assumed, 4);
    expect(cache.get('instance', key)).toBeUndefined();
  });

  it('counts released room as held until the release is durable: a claim must not rest on it', () => {
    const held = allocationOn('h1', 3);
    const cache = testCache([held]);
    const allocation = keyOf(held);
    const plan: Plan = {
      changes: [{ key: allocation, ifRevision: cache.get('allocation', allocation)?.revision ?? 0, value: null }],
    };
    const freed: unknown[] = [];
    const assumed = cache.assume(plan);
    expect(cache.usedBy('h1').get('VCPU')).toBe(3);
    cache.onChange(({ before }) => freed.push(before));
    if (assumed.ok) cache.confirm(assumed, 9);
    expect(cache.usedBy('h1').get('VCPU')).toBe(0);
    expect(freed).toEqual([held]);
  });

  it('counts what another control plane committed under a claim of its own for the same instance', () => {
    const cache = testCache([]);
    const allocation = keyOf(allocationOn('h1', 2));
    const plan: Plan = { changes: [{ key: allocation, ifRevision: 0, value: allocationOn('h1', 2) }] };
    const assumed = cache.assume(plan);
    cache.apply([{ key: allocation, value: allocationOn('h2', 2), revision: 5 }], 5);
    expect([cache.usedBy('h1').get('VCPU'), cache.usedBy('h2').get('VCPU')]).toEqual([2, 2]);
    if (assumed.ok) cache.forget(assumed);
    expect([cache.usedBy('h1').get('VCPU'), cache.usedBy('h2').get('VCPU')]).toEqual([0, 2]);
  });

  it('tells of every host that an allocation may be on, when two control planes placed one instance', () => {
    const cache = testCache([]);
    const allocation = keyOf(allocationOn('h1', 2));
    const told: (string | undefined)[] = [];
    cache.onChange(({ before, after }) => {
      const one = after ?? before;
      told.push(one?.kind === 'allocation' ? one.host : undefined);
    });
    const plan: Plan = { changes: [{ key: allocation, ifRevision: 0, value: allocationOn('h1', 2) }] };
    const assumed = cache.assume(plan);
    cache.apply([{ key: allocation, value: allocationOn('h2', 2), revision: 5 }], 5);
    expect([cache.heldOnHost('h1'), cache.heldOnHost('h2')]).toEqual([1, 1]);
    expect(new Set(told)).toEqual(new Set(['h1', 'h2']));
    told.length = 0;
    if (assumed.ok) cache.forget(assumed);
    expect(new Set(told)).toEqual(new Set(['h1', 'h2']));
    expect([cache.heldOnHost('h1'), cache.heldOnHost('h2')]).toEqual([0, 1]);
    expect([...cache.allocationsOnHost('h2')].map(({ value }) => value.host)).toEqual(['h2']);
  });

  it('finds images by alias, for as long as they bear it', () => {
    const cache = testCache([testImage('debian-12', { aliases: ['debian'] })]);
    expect(cache.imageByName('debian')?.value.metadata.name).toBe('debian-12');
    cache.apply([{ key: 'images/debian-12', value: testImage('debian-12'), revision: 9 }], 9);
    expect(cache.imageByName('debian')).toBeUndefined();
    expect(cache.imageByName('debian-12')).toBeDefined();
  });

  it('drops what a fresh list no longer holds', () => {
    const cache = testCache([testInstance('web'), testInstance('db')]);
    cache.reset([{ key, value: testInstance('web'), revision: 1 }], 40);
    expect([...cache.list('instance')].map((entry) => entry.key)).toEqual([key]);
  });

  it('is the same after a list in portions, with changes made meanwhile, as after one list', () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const event = (name: string, revision: number, pending: boolean, there = true): StoredEvent => {
      const value = testInstance(name, {}, { phase: pending ? 'Pending' : 'Running' });
      return { key: keyOf(value), value: there ? value : null, revision };
    };
    const listed = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.boolean()), { selector: ([name]) => name });
    const changed = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), fc.boolean(), fc.boolean()), {
      selector: ([name]) => name,
    });
    const known = fc.constantFrom('nothing', 'another', 'a list that failed');
    fc.assert(
      fc.property(listed, fc.nat(5), changed, known, (entries, at, changes, known) => {
        const cache = known === 'another' ? testCache([testInstance('gone')]) : new Cache(() => 0);
        const told: string[] = [];
        cache.onCommitted((key) => told.push(key));
        const all = entries.map(([name, pending]) => event(name, 5, pending));
        const after = changes.map(([name, pending, there]) => event(name, 7, pending, there));
        if (known === 'a list that failed') cache.beginReset().take([event('a', 4, true), event('gone', 4, true)]);
        const listing = cache.beginReset();
        listing.take(all.slice(0, at));
        listing.take(all.slice(at));
        expect(told).toEqual([]);
        listing.end(after, 9);
        const expected = new Map([...all, ...after].map((entry) => [entry.key, entry]));
        for (const [key, { value }] of expected) if (value === null) expected.delete(key);
        const found = [...cache.listCommitted('instance')];
        expect(new Map(found.map((entry) => [entry.key, entry]))).toEqual(expected);
        for (const { key, value } of found) expect(cache.instanceById(value.metadata.id)?.key).toBe(key);
        expect(new Set(cache.pendingInstanceKeys())).toEqual(
          new Set(found.filter(({ value }) => value.status.phase === 'Pending').map(({ key }) => key)),
        );
        expect(cache.revision).toBe(9);
        for (const key of expected.keys()) expect(told).toContain(key);
      }),
    );
  });

  it('takes no Plan while it is only a part of what there is', () => {
    const cache = new Cache(() => 0);
    const listing = cache.beginReset();
    expect(() => cache.assume(write(0))).toThrow('only a part is there');
    listing.end([], 3);
    expect(cache.assume(write(0)).ok).toBe(true);
  });

  it('knows who holds ports of a host, of every form that may come true', () => {
    const hosts = ['h1', 'h2'];
    const step = fc.record({
      at: fc.constantFrom('x', 'y'),
      host: fc.constantFrom(...hosts, null),
      ports: fc.constantFrom(undefined, [], ['tcp/80'], ['tcp/81', 'udp/81']),
      fate: fc.constantFrom('confirm', 'forget', 'wait', 'by another'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const cache = new Cache(() => 0);
        for (const { at, host, ports, fate } of steps) {
          const value = host === null ? null : { ...allocationOn(host, 1), ...(ports && { ports }) };
          const where = `allocations/${at}`;
          const revision = cache.revision + 1;
          const change = { key: where, ifRevision: cache.get('allocation', where)?.revision ?? 0, value };
          const assumed = fate === 'by another' ? undefined : cache.assume({ changes: [change] });
          if (assumed?.ok && fate === 'confirm') cache.confirm(assumed, revision);
          if (assumed?.ok && fate === 'forget') cache.forget(assumed);
          cache.apply(fate === 'by another' ? [{ key: where, value, revision }] : [], revision);
          for (const on of hosts) {
            const held = [...cache.allocationsHeldOnHost(on)].flatMap(({ ports }) => ports ?? []);
            expect(new Set(cache.portsHeldOnHost(on))).toEqual(new Set(held));
          }
        }
      }),
    );
  });

  it('keeps its indexes equal to ones made anew, for any history', () => {
    const names = ['a', 'b', 'c'];
    const step = fc.record({
      name: fc.constantFrom(...names),
      remove: fc.boolean(),
      phase: fc.constantFrom('Pending', 'Running'),
      fate: fc.constantFrom('confirm', 'forget'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const cache = new Cache(() => 0);
        for (const { name, remove, phase, fate } of steps) {
          const value = remove ? null : testInstance(name, {}, { phase: phase === 'Pending' ? 'Pending' : 'Running' });
          const at = keyOf(testInstance(name));
          const plan: Plan = { changes: [{ key: at, ifRevision: cache.get('instance', at)?.revision ?? 0, value }] };
          const assumed = cache.assume(plan);
          if (!assumed.ok) throw new Error('own view must hold');
          if (fate === 'confirm') cache.confirm(assumed, cache.revision + 1);
          else cache.forget(assumed);
          cache.apply([], cache.revision + 1);
        }
        const entries = [...cache.list('instance')];
        const pending = entries.filter((entry) => entry.value.status.phase === 'Pending').map((entry) => entry.key);
        expect(new Set(cache.pendingInstanceKeys())).toEqual(new Set(pending));
        for (const entry of entries) expect(cache.instanceById(entry.value.metadata.id)?.key).toBe(entry.key);
      }),
    );
  });
});
