// The lifetime of an instance: what may be asked for, and how it ends.

import { describe, expect, it } from 'vitest';
import { expiryOf } from '../../api/instances/lifetime.ts';
import { parse } from '../../api/parse.ts';
import { InstanceSpec } from '../../api/resources/instance.ts';
import { createInstance, replaceInstance } from '../operations/instance.ts';
import { deleteByOwner } from '../operations/instances/delete-by-owner.ts';
import type { Cache } from '../state/cache.ts';
import { commitPlan, testCache, testContext, testImage } from '../testing.ts';
import { expiry } from './expiry.ts';

const key = 'instances/default/web';
const hour = 3_600_000;
const bornMs = 100 * hour;
let ids = 0;
const at = (nowMs: number) => testContext({ nowMs, newId: (prefix) => `${prefix}_${++ids}` });
const specOf = (spec: object) => parse(InstanceSpec, { image: 'tiny', powerState: 'stopped', ...spec }, 'spec');

function make(spec: object): Cache {
  const cache = testCache([testImage()]);
  const input = { project: 'default', name: 'web', labels: {}, spec: specOf(spec) };
  commitPlan(cache, createInstance(cache, input, at(bornMs)).plan);
  return cache;
}

function change(cache: Cache, spec: object, nowMs: number): void {
  const input = { project: 'default', name: 'web', labels: {}, spec: specOf(spec) };
  commitPlan(cache, replaceInstance(cache, input, at(nowMs)).plan);
}

function answerTo(act: () => unknown): string {
  try {
    act();
    return 'accepted';
  } catch (error) {
    return error instanceof Error && 'field' in error ? `${String(error.field)}: ${error.message}` : String(error);
  }
}

const webOf = (cache: Cache) => cache.get('instance', key)?.value ?? expect.unreachable();
const told = (cache: Cache): string[] => [...cache.list('event')].map(({ value }) => value.spec.reason);

/** What happens until this time, at the times that the controller asks for. */
function passUntil(cache: Cache, endMs: number): void {
  for (let nowMs = bornMs, turns = 0; nowMs <= endMs; turns++) {
    if (turns > 1000) throw new Error('the controller asks for no time to come');
    const plan = expiry.reconcile(cache, key, at(nowMs));
    commitPlan(cache, plan);
    if (plan.changes.length === 0) nowMs += plan.requeueAfterMs ?? Number.POSITIVE_INFINITY;
  }
}

describe('an instance with a lifetime', () => {
  it.each([
    ['a ttl', { ttlMs: 10 * hour }],
    ['a time of expiry', { expiresAtMs: bornMs + 10 * hour }],
  ])('by %s is deleted at its end, and its owner hears of it before', (_, spec) => {
    const cache = make(spec);
    passUntil(cache, bornMs + 9 * hour);
    expect(told(cache)).not.toContain('Expiring');
    passUntil(cache, bornMs + 10 * hour - 1);
    expect(told(cache).filter((reason) => reason === 'Expiring')).toHaveLength(1);
    expect(webOf(cache).status.phase).toBe('Stopped');
    passUntil(cache, bornMs + 10 * hour);
    expect(webOf(cache)).toMatchObject({ status: { phase: 'Deleting' } });
    expect(told(cache)).toContain('Expired');
  });

  it('lives longer when it is extended, and is spoken of again', () => {
    const cache = make({ ttlMs: hour });
    passUntil(cache, bornMs + hour - 1);
    change(cache, { ttlMs: 3 * hour }, bornMs + hour - 1);
    passUntil(cache, bornMs + 3 * hour - 1);
    expect(webOf(cache).status.phase).toBe('Stopped');
    expect(told(cache).filter((reason) => reason === 'Expiring')).toHaveLength(2);
    expect(expiryOf(webOf(cache))).toBe(bornMs + 3 * hour);
  });

  it('without one is left alone', () => {
    const cache = make({});
    passUntil(cache, bornMs + 10_000 * hour);
    expect(webOf(cache).status.phase).toBe('Stopped');
  });

  const rows: [name: string, spec: object, answer: RegExp][] = [
    ['an expiry in the past', { expiresAtMs: bornMs - 1 }, /^spec\.expiresAtMs: its time would be over/],
    ['both', { ttlMs: hour, expiresAtMs: bornMs + hour }, /^spec\.expiresAtMs: .*leave one/],
    ['a protected one that expires', { ttlMs: hour, protected: true }, /^spec\.protected/],
    ['no time at all', { ttlMs: 0 }, /^spec\.ttlMs/],
    ['a protected one', { protected: true }, /^accepted$/],
  ];
  it.each(rows)('as a request: %s', (_, spec, answer) => {
    expect(answerTo(() => make(spec))).toMatch(answer);
  });

  it('cannot be shortened to a time that is over', () => {
    const cache = make({ ttlMs: 10 * hour });
    expect(answerTo(() => change(cache, { ttlMs: hour }, bornMs + 2 * hour))).toMatch(/^spec\.ttlMs: its time would/);
    expect(answerTo(() => change(cache, { ttlMs: 3 * hour }, bornMs + 2 * hour))).toBe('accepted');
  });
});

it('a protected instance is deleted only after its protection has ended', () => {
  const cache = make({ protected: true });
  const remove = () => commitPlan(cache, deleteByOwner(cache, { project: 'default', name: 'web' }, at(bornMs)).plan);
  expect(answerTo(remove)).toMatch(
    /^spec\.protected: instance "web" is protected from deletion; "berth unprotect web"/,
  );
  change(cache, { protected: false }, bornMs);
  expect(answerTo(remove)).toBe('accepted');
  expect(webOf(cache).metadata.deletionRequestedAtMs).toBe(bornMs);
});
