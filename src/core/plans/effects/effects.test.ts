import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { PoolSpec } from '../../../api/resources/pool.ts';
import { deletePlainResource, newPlainResource, type PlainKind } from '../../operations/plain-resource.ts';
import type { Cache } from '../../state/cache.ts';
import {
  addRecord,
  commitPlan,
  testContext,
  testFleet,
  testGroup,
  testHost,
  testImage,
  testInstance,
  testWorkload,
} from '../../testing.ts';
import { effectsOf, effectsWithoutNames, isUsed, type UsedResource } from './effects.ts';

const ctx = testContext();
const pool = (name: string, spec: object = {}) =>
  newPlainResource('pool', { project: '', name, labels: {}, spec: parse(PoolSpec, spec, 'spec') }, ctx);

function rowsOf(cache: Cache, before: UsedResource, after?: UsedResource): string[] {
  const { affected } = effectsOf(cache, { before, after }, ctx.policy);
  return affected.map(({ kind, name, code }) => `${kind} ${name} ${code}`);
}

describe('the deletion of', () => {
  it('an image affects what names it, or an alias of it', () => {
    const image = testImage('tiny', { aliases: ['small'] });
    const cache = testFleet({ a: {} }, image);
    addRecord(cache, testInstance('web', { image: 'tiny' }));
    addRecord(cache, testInstance('by-alias', { image: 'small' }));
    addRecord(cache, testInstance('other', { image: 'debian' }));
    addRecord(cache, testInstance('leaving', { image: 'tiny' }, {}, { deletionRequestedAtMs: 1 }));
    addRecord(cache, testWorkload('shop'));
    expect(rowsOf(cache, image)).toEqual([
      'workload shop CannotReplace',
      'instance by-alias CannotPlace',
      'instance web CannotPlace',
    ]);
    expect(rowsOf(cache, image, { ...image, spec: { ...image.spec, aliases: [] } })).toEqual([
      'instance by-alias CannotPlace',
    ]);
  });

  it('a pool affects its hosts, and what asks for it', () => {
    const cache = testFleet({ a: { spec: { pool: 'gpu' } }, b: {} });
    addRecord(cache, testInstance('web', { placement: { pool: 'gpu' } }));
    expect(rowsOf(cache, pool('gpu'))).toEqual(['host a LosesRules', 'instance web LosesRules']);
  });

  it('a placement group affects its members', () => {
    const cache = testFleet({ a: {} });
    const group = testGroup('g');
    addRecord(cache, group);
    addRecord(cache, testInstance('web', { placement: { group: 'g' } }));
    expect(rowsOf(cache, group)).toEqual(['instance web CannotPlace']);
  });
});

describe('a change of', () => {
  it('a pool lists the hosts that then have less than is in use', () => {
    const cache = testFleet({ a: { spec: { pool: 'web' } } });
    const [host] = testHost('a');
    addRecord(cache, testInstance('big', { cpus: 6 }));
    const provider = cache.providersOfHost('a')[0]?.value.id ?? '';
    commitPlan(cache, {
      changes: [
        {
          key: 'allocations/inst_big-1',
          ifRevision: 0,
          value: {
            kind: 'allocation',
            host: host.metadata.name,
            driver: 'fake',
            consumer: { id: 'inst_big', project: 'default', name: 'big', incarnation: 1 },
            amounts: { [provider]: { VCPU: 6 } },
          },
        },
      ],
    });
    const before = pool('web', { allocationRatios: { VCPU: 4 } });
    expect(rowsOf(cache, before, pool('web', { allocationRatios: { VCPU: 2 } }))).toEqual([]);
    expect(rowsOf(cache, before, pool('web', { hostLimits: { VCPU: 1 } }))).toEqual(['host a OverCapacity']);
  });

  it('a pool lists the instances whose mounts it no longer allows', () => {
    const cache = testFleet({ a: {} });
    const mounts = [{ hostPath: '/srv/data', path: '/data', readOnly: false }];
    addRecord(
      cache,
      testInstance('web', { placement: { pool: 'web' }, containers: [{ image: 'tiny', mounts }] } as object),
    );
    const before = pool('web', { hostPaths: ['/srv'] });
    expect(rowsOf(cache, before, pool('web', { hostPaths: ['/opt'] }))).toEqual(['instance web MountNotAllowed']);
  });

  it('a group lists the members that stand against its new rules', () => {
    const cache = testFleet({ a: {} });
    addRecord(cache, testInstance('one', { placement: { group: 'g' } }, { host: 'a' }));
    addRecord(cache, testInstance('two', { placement: { group: 'g' } }, { host: 'a' }));
    const before = testGroup('g');
    expect(rowsOf(cache, before, testGroup('g', { maxPerHost: 2 }))).toEqual([]);
    expect(rowsOf(cache, before, testGroup('g', { maxPerHost: 1 }))).toEqual(['instance two BreaksRule']);
    expect(rowsOf(cache, before, testGroup('g', { antiAffinity: { by: 'host', required: true } }))).toEqual([
      'instance two BreaksRule',
    ]);
  });
});

describe('what is in use', () => {
  const remove = (cache: Cache, kind: PlainKind, apply?: string) =>
    deletePlainResource(cache, kind, { project: '', name: 'tiny', ...(apply === undefined ? {} : { apply }) }, ctx);

  function refused(work: () => unknown): ApiError {
    try {
      work();
    } catch (error) {
      if (error instanceof ApiError) return error;
    }
    throw new Error('it was not refused');
  }

  it('is removed by the hash of its effects, and not when these have changed', () => {
    const cache = testFleet({ a: {} });
    addRecord(cache, testInstance('web', { image: 'tiny' }));
    const first = refused(() => remove(cache, 'image'));
    expect(first).toMatchObject({ code: 'Conflict', field: 'apply', details: { count: 1 } });
    const image = cache.imageByName('tiny')?.value;
    if (!image || !isUsed(image)) throw new Error('no image');
    const { hash } = effectsOf(cache, { before: image, after: undefined }, ctx.policy);
    expect(first.details).toMatchObject({ hash });
    addRecord(cache, testInstance('more', { image: 'tiny' }));
    expect(refused(() => remove(cache, 'image', hash)).message).toContain('no longer as it was shown');
    const now = effectsOf(cache, { before: image, after: undefined }, ctx.policy);
    commitPlan(cache, remove(cache, 'image', now.hash).plan);
    expect(cache.imageByName('tiny')).toBeUndefined();
  });

  it('is named to those who may know it', () => {
    const cache = testFleet({ a: {} });
    addRecord(cache, testInstance('web', { image: 'tiny' }));
    const image = testImage('tiny');
    const effects = effectsOf(cache, { before: image, after: undefined }, ctx.policy);
    const [hidden] = effectsWithoutNames(effects, () => false).affected;
    expect(hidden).toMatchObject({ message: 'CannotPlace' });
    expect(hidden?.name).toBe(hidden?.id);
  });
});
