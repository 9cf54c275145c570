import { beforeEach, describe, expect, it } from 'vitest';
import type { Env } from '../../api/resources/container.ts';
import type { SecretSpec } from '../../api/resources/secret.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { commitPlan, testCache, testContext, testImage, testInstance, testJob } from '../testing.ts';
import { createInstance } from './instance.ts';
import { createSecret, deleteSecret, replaceSecret } from './secret.ts';
import { secretsNamedBy, secretValuesFor } from './secret-references.ts';

const ctx = testContext();
const later = testContext({ nowMs: 2_000_000 });
const planted = 'planted-8f1c2d';
const dataKey = {
  kind: 'dataKey',
  id: '0'.repeat(16),
  masterKey: '1'.repeat(16),
  wrapped: '',
  createdAtMs: 1,
} as const;
const named = { project: 'default', name: 'db', labels: {} };
const specOf = (values: SecretSpec['values']): SecretSpec => ({ description: '', ...(values ? { values } : {}) });

let cache: Cache;
beforeEach(() => {
  cache = testCache([dataKey, testImage()]);
});

const create = (values: SecretSpec['values'] = { password: planted }): void =>
  commitPlan(cache, createSecret(cache, { ...named, spec: specOf(values) }, ctx).plan);
const replace = (values: SecretSpec['values']): void =>
  commitPlan(cache, replaceSecret(cache, { ...named, spec: specOf(values) }, later).plan);
const secret = () => cache.get('secret', keys.secret('default', 'db'))?.value;
const values = () => cache.get('secretValues', keys.secretValues('default', 'db'))?.value.values;

describe('a secret', () => {
  it('has the names of its values, and the values elsewhere', () => {
    create();
    expect(JSON.stringify(secret())).not.toContain(planted);
    expect(secret()).toMatchObject({
      spec: { description: '' },
      status: { version: 1, keys: { password: { updatedAtMs: 1_000_000 } } },
    });
    expect(values()).toEqual({ password: planted });
  });

  it('keeps the values that a replace does not name', () => {
    create({ a: '1', b: '2', c: '3' });
    replace({ a: '1', b: '22', c: null });
    expect(values()).toEqual({ a: '1', b: '22' });
    expect(secret()?.status).toEqual({
      version: 2,
      keys: { a: { updatedAtMs: 1_000_000 }, b: { updatedAtMs: 2_000_000 } },
    });
    replace(undefined);
    expect(values()).toEqual({ a: '1', b: '22' });
    expect(secret()?.status.version).toBe(2);
  });

  it('is not created where nothing is encrypted', () => {
    cache = testCache([testImage()]);
    expect(() => create()).toThrow('the servers have no master key');
  });

  it('leaves no value in the note of its idempotency key, and repeats the create', () => {
    const input = { ...named, spec: specOf({ password: planted }), idempotencyKey: 'k' };
    const first = createSecret(cache, input, ctx);
    expect(JSON.stringify(first.plan.changes.filter(({ value }) => value?.kind === 'idempotency'))).not.toContain(
      planted,
    );
    commitPlan(cache, first.plan);
    expect(createSecret(cache, input, ctx).changed).toBe(false);
  });

  it.each([
    ['too many values', Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`k${i}`, ''])), '64 values at most'],
    [
      'too much text',
      Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`k${i}`, 'x'.repeat(32_000)])),
      'larger than',
    ],
  ])('is refused with %s', (_, wanted, message) => expect(() => create(wanted)).toThrow(message));

  it('goes with its values', () => {
    create();
    commitPlan(cache, deleteSecret(cache, { ...named, force: false }).plan);
    expect([secret(), values()]).toEqual([undefined, undefined]);
  });

  it.each([
    ['an instance', testInstance('a', { containers: [{ name: 'main', env: reference(), ports: [] }] }), 'instance "a"'],
    ['a job that has not ended', testJob('j', { env: reference() }), 'job "j"'],
  ])('is not deleted while %s uses it, but by force', (_, user, message) => {
    create();
    commitPlan(cache, { changes: [{ key: userKey(user), ifRevision: 0, value: user }] });
    expect(() => deleteSecret(cache, { ...named, force: false })).toThrow(`is used by ${message}`);
    expect(deleteSecret(cache, { ...named, force: true }).changed).toBe(true);
  });
});

function reference(): Env {
  return { PASSWORD: { secret: 'db', key: 'password' } };
}

function userKey({ kind, metadata: { name } }: { kind: 'instance' | 'job'; metadata: { name: string } }): string {
  return keys[kind]('default', name);
}

describe('a reference', () => {
  const run = {
    env: reference(),
    artifacts: [],
    timeLimitMs: 1000,
    graceMs: 1000,
    holdOnFailure: false,
    script: 'true',
  };

  it('is found in containers, runs and jobs', () => {
    const env = { ...reference(), PLAIN: 'x' };
    expect(secretsNamedBy({ env, run: { env }, containers: [{ env: {} }, { env }] }).map(({ field }) => field)).toEqual(
      ['spec.env.PASSWORD', 'spec.run.env.PASSWORD', 'spec.containers[1].env.PASSWORD'],
    );
  });

  it.each([
    ['that is missing', 'other', 'password', 'spec.run.env.PASSWORD: there is no secret "other" in project "default"'],
    ['without the value', 'db', 'user', 'spec.run.env.PASSWORD: secret "db" has no value "user"; it has password'],
  ])('to a secret %s is refused, naming the field', (_, name, key, message) => {
    create();
    const { spec } = testInstance('a', { run: { ...run, env: { PASSWORD: { secret: name, key } } } });
    const input = { project: 'default', name: 'a', labels: {}, spec };
    expect(() => createInstance(cache, input, ctx)).toThrow(message);
  });

  it.each([
    ['without a registry', { prefix: 'team' }, 'spec.imageCredentials[0].prefix'],
    ['of a registry without a user name', { prefix: 'r.example.com' }, 'spec.imageCredentials[0].username'],
    ['that would cross in clear', { prefix: 'http://i.example.com' }, 'spec.imageCredentials[0].prefix'],
    ['without the value', { prefix: 'https://i.example.com', key: 'none' }, 'spec.imageCredentials[0]'],
    ['of a missing secret', { prefix: 'https://i.example.com', secret: 'none' }, 'spec.imageCredentials[0]'],
  ])('of an image credential %s is refused', (_, change, field) => {
    create();
    const credential = { secret: 'db', key: 'password', ...change };
    const { spec } = testInstance('a', { imageCredentials: [credential] });
    const input = { project: 'default', name: 'a', labels: {}, spec };
    expect(() => createInstance(cache, input, ctx)).toThrow(expect.objectContaining({ field }));
  });

  it('does not reach a secret of another project', () => {
    create();
    const { spec } = testInstance('a', { run });
    expect(() => createInstance(cache, { project: 'other', name: 'a', labels: {}, spec }, ctx)).toThrow(
      'there is no secret "db" in project "other"',
    );
  });

  it('brings only the values that are named', () => {
    const known = { password: planted, other: 'x' };
    const byName = (project: string, name: string) => (project === 'default' && name === 'db' ? known : undefined);
    expect(secretValuesFor('default', { run }, byName)).toEqual({ db: { password: planted } });
    expect(secretValuesFor('other', { run }, byName)).toEqual({});
    expect(secretValuesFor('default', {}, byName)).toBeUndefined();
  });
});
