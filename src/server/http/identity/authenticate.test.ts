import { describe, expect, it } from 'vitest';
import { ApiError } from '../../../api/errors.ts';
import type { TokenSpec } from '../../../api/resources/token.ts';
import { makeToken, type TokenKind, tokenBytes } from '../../../api/token-text.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { issueToken, revokeToken } from '../../../core/operations/access/token.ts';
import type { Cache } from '../../../core/state/cache.ts';
import type { Cluster } from '../../../core/state/records.ts';
import { commitPlan, testCache, testContext } from '../../../core/testing.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import type { Store } from '../../../store/store.ts';
import { Authenticator, type AuthenticationFailure, digestOf, type Identity, type Shown } from './authenticate.ts';
import { Freshness } from './freshness.ts';
import { hostTokenOf } from '../tokens.ts';

const hostSecret = Buffer.alloc(32, 'x');
const adminText = 'berth-operator.0123456789012345678901234567890123456789';
const cluster: Cluster = {
  kind: 'cluster',
  recordsVersion: 1,
  epoch: 'epoch',
  createdAtMs: 0,
  tokenSecret: 'x'.repeat(43),
  operatorDigest: digestOf(adminText),
};

let seed = 0;

class Setting {
  readonly clock = createManualClock(0);
  readonly cache: Cache = testCache([cluster]);
  readonly failures: AuthenticationFailure[] = [];
  readonly used: string[] = [];
  readonly ctx = testContext({ nowMs: 0 });
  readonly authenticator: Authenticator;

  constructor(store: Store = { ...createMemoryStore(), exclusive: true }) {
    const { cache, clock } = this;
    this.authenticator = new Authenticator({
      cache,
      clock,
      freshness: new Freshness({ store, cache, clock }),
      hostSecret,
      onUsed: ({ name }) => this.used.push(name),
      onFailed: ({ reason }) => this.failures.push(reason),
    });
  }

  /** The text of a new token. */
  issue(name: string, spec: Partial<TokenSpec> = {}, kind: TokenKind = 's'): string {
    seed += 1;
    const { id: tokenId, text } = makeToken(kind, new Uint8Array(tokenBytes).fill(seed));
    const proof = { tokenId, digest: digestOf(text) };
    commitPlan(this.cache, issueToken(this.cache, { name, spec: { description: '', ...spec }, proof }, this.ctx).plan);
    return text;
  }

  uid(name: string): string {
    return this.cache.get('token', `tokens/${name}`)?.value.metadata.id ?? '';
  }

  identify(authorization: string | readonly string[], shown: Partial<Shown> = {}): Identity | Promise<Identity> {
    const authorizations = typeof authorization === 'string' ? [authorization] : authorization;
    return this.authenticator.identify({ authorizations, certificate: undefined, address: '::1', url: '/', ...shown });
  }
}

describe('a request', () => {
  it('with a token is the bearer of that token', () => {
    const setting = new Setting();
    const text = setting.issue('ci');
    expect(setting.identify(`Bearer ${text}`)).toMatchObject({ kind: 'token', name: 'ci', uid: setting.uid('ci') });
    expect(setting.identify(`bearer ${text}`)).toMatchObject({ name: 'ci' });
    expect(setting.used).toEqual(['ci', 'ci']);
    expect(setting.failures).toEqual([]);
  });

  it('with the admin token is the admin, and nobody once another took its place', () => {
    const setting = new Setting();
    expect(setting.identify(`Bearer ${adminText}`)).toEqual({ kind: 'admin' });
    const key = 'cluster/this';
    const { revision = 0 } = setting.cache.get('cluster', key) ?? {};
    const value = { ...cluster, operatorDigest: digestOf('another') };
    commitPlan(setting.cache, { changes: [{ key, ifRevision: revision, value }] });
    expect(setting.identify(`Bearer ${adminText}`)).toBeInstanceOf(ApiError);
  });

  it('with the token of a host is that host', () => {
    const text = hostTokenOf(hostSecret, 'a', 0);
    expect(new Setting().identify(`Bearer ${text}`)).toEqual({ kind: 'host', host: 'a' });
  });

  it('with nothing is nobody, which is no failure', () => {
    const setting = new Setting();
    expect(setting.identify([])).toBeUndefined();
    expect(setting.failures).toEqual([]);
  });

  it.each<[string, AuthenticationFailure, (setting: Setting, text: string) => Identity | Promise<Identity>]>([
    ['a truncated token', 'malformed', (s, text) => s.identify(`Bearer ${text.slice(0, 30)}`)],
    [
      'a wrong CRC',
      'malformed',
      (s, text) => s.identify(`Bearer ${text.slice(0, -1)}${text.endsWith('a') ? 'b' : 'a'}`),
    ],
    [
      'a known id and a wrong secret',
      'wrong-secret',
      (s, text) => {
        const bytes = new Uint8Array(tokenBytes).fill(seed);
        bytes[39] = 0;
        const forged = makeToken('s', bytes);
        expect(text).toContain(forged.id);
        return s.identify(`Bearer ${forged.text}`);
      },
    ],
    [
      'another kind with the secret of a token',
      'wrong-secret',
      (s) => s.identify(`Bearer ${makeToken('u', new Uint8Array(tokenBytes).fill(seed)).text}`),
    ],
    [
      'an unknown id',
      'unknown',
      (s) => s.identify(`Bearer ${makeToken('s', new Uint8Array(tokenBytes).fill(250)).text}`),
    ],
    [
      'a token for joining',
      'wrong-kind',
      (s) => s.identify(`Bearer ${makeToken('j', new Uint8Array(tokenBytes).fill(1)).text}`),
    ],
    ['the token of a host with a wrong end', 'malformed', (s) => s.identify('Bearer berth-host.a.AAAA')],
    ['something else', 'unknown', (s) => s.identify('Bearer eyJhbGciOiJub25lIn0.e30.')],
    ['a token in the query', 'in-query', (s, text) => s.identify([], { url: `/v1/instances?token=${text}` })],
    ['a token as another parameter', 'in-query', (s, text) => s.identify([], { url: `/v1/instances?q=${text}` })],
    ['two headers', 'repeated-header', (s, text) => s.identify([`Bearer ${text}`, `Bearer ${text}`])],
    ['Basic', 'not-bearer', (s, text) => s.identify(`Basic ${Buffer.from(`x:${text}`).toString('base64')}`)],
    ['no scheme', 'not-bearer', (s, text) => s.identify(text)],
    ['two tokens in one header', 'not-bearer', (s, text) => s.identify(`Bearer ${text}, Bearer ${text}`)],
    ['4 KiB', 'malformed', (s) => s.identify(`Bearer berth_s_${'x'.repeat(4096)}`)],
    [
      'an expired token',
      'expired',
      (s) => {
        const text = s.issue('short', { expiresAtMs: 1000 });
        expect(s.identify(`Bearer ${text}`)).toMatchObject({ name: 'short' });
        s.clock.advance(1000);
        return s.identify(`Bearer ${text}`);
      },
    ],
    [
      'a token whose maker has expired',
      'expired',
      (s) => {
        s.issue('maker', { expiresAtMs: 1000 });
        const text = s.issue('made', { owner: { name: 'maker', id: s.uid('maker') } });
        s.clock.advance(1000);
        return s.identify(`Bearer ${text}`);
      },
    ],
    [
      'a token whose maker was revoked',
      'revoked',
      (s) => {
        s.issue('maker');
        const text = s.issue('made', { owner: { name: 'maker', id: s.uid('maker') } });
        commitPlan(s.cache, revokeToken(s.cache, { name: 'maker' }).plan);
        return s.identify(`Bearer ${text}`);
      },
    ],
    [
      'a token whose maker was made again',
      'revoked',
      (s) => {
        s.issue('maker');
        const text = s.issue('made', { owner: { name: 'maker', id: s.uid('maker') } });
        commitPlan(s.cache, revokeToken(s.cache, { name: 'maker' }).plan);
        s.issue('maker');
        return s.identify(`Bearer ${text}`);
      },
    ],
    [
      'a revoked token',
      'unknown',
      (s, text) => {
        commitPlan(s.cache, revokeToken(s.cache, { name: 'ci' }).plan);
        return s.identify(`Bearer ${text}`);
      },
    ],
    [
      'a revoked token whose name was given again',
      'unknown',
      (s, text) => {
        commitPlan(s.cache, revokeToken(s.cache, { name: 'ci' }).plan);
        s.issue('ci');
        return s.identify(`Bearer ${text}`);
      },
    ],
  ])('with %s is refused, and counted as %s', async (_, reason, show) => {
    const setting = new Setting();
    const text = setting.issue('ci');
    const identity = await show(setting, text);
    expect(identity).toBeInstanceOf(ApiError);
    expect(identity).toMatchObject({ code: 'Unauthenticated' });
    expect(JSON.stringify([identity, identity instanceof ApiError ? identity.message : ''])).not.toContain(
      text.slice(8, 40),
    );
    expect(setting.failures).toEqual([reason]);
  });
});

describe('a server of a shared store', () => {
  const shared = (changes: Partial<Store> = {}) => {
    let asked = 0;
    const store: Store = {
      ...createMemoryStore(),
      commit() {
        asked += 1;
        return Promise.resolve({ ok: true, revision: 1 });
      },
      ...changes,
    };
    return { setting: new Setting(store), asked: () => asked };
  };

  it('asks the store first when it has heard nothing for a second, and only then', async () => {
    const { setting, asked } = shared();
    const text = setting.issue('ci');
    setting.cache.apply([], setting.cache.revision + 1); // heard
    expect(setting.identify(`Bearer ${text}`)).toMatchObject({ name: 'ci' });
    expect(asked()).toBe(0);
    setting.clock.advance(1001);
    const [first, second] = [setting.identify(`Bearer ${text}`), setting.identify(`Bearer ${adminText}`)];
    expect(await first).toMatchObject({ name: 'ci' });
    expect(await second).toEqual({ kind: 'admin' });
    expect(asked()).toBe(1); // one question for all that wait
    expect(setting.identify(`Bearer ${text}`)).toMatchObject({ name: 'ci' });
  });

  it('waits for what others have written, which may be a revocation', async () => {
    const revision = { now: 1 };
    const { setting } = shared({ commit: () => Promise.resolve({ ok: true, revision: revision.now }) });
    const text = setting.issue('ci');
    const revoked = revokeToken(setting.cache, { name: 'ci' }).plan;
    revision.now = setting.cache.revision + 1;
    setting.clock.advance(1001);
    const identity = setting.identify(`Bearer ${text}`);
    setting.cache.apply(
      revoked.changes.map(({ key, value }) => ({ key, value, revision: revision.now })),
      revision.now,
    );
    expect(await identity).toMatchObject({ code: 'Unauthenticated' });
  });

  it.each<[string, Partial<Store>]>([
    ['fails', { commit: () => Promise.reject(new Error('cut off')) }],
    ['is silent', { commit: () => new Promise(() => {}) }],
    ['is ahead, and its news do not come', { commit: () => Promise.resolve({ ok: true, revision: 99 }) }],
  ])('refuses while the store %s', async (_, changes) => {
    const { setting } = shared(changes);
    const text = setting.issue('ci');
    setting.clock.advance(1001);
    const identity = Promise.resolve(setting.identify(`Bearer ${text}`));
    const refused = expect(identity).rejects.toMatchObject({ code: 'Unavailable' });
    const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
    await setting.clock.advanceSettled(10_000, settle);
    await refused;
  });

  it('asks nothing for requests without credentials', () => {
    const { setting, asked } = shared();
    setting.clock.advance(5000);
    expect(setting.identify([])).toBeUndefined();
    expect(asked()).toBe(0);
  });

  it('asks once more for a token that it does not know, which may have been made elsewhere', async () => {
    const { setting, asked } = shared();
    setting.cache.apply([], setting.cache.revision + 1);
    const strange = `Bearer ${makeToken('s', new Uint8Array(tokenBytes).fill(251)).text}`;
    expect(await setting.identify(strange)).toBeInstanceOf(ApiError);
    expect(await setting.identify(strange)).toBeInstanceOf(ApiError);
    expect(asked()).toBe(1);
    expect(setting.failures).toEqual(['unknown', 'unknown']);
  });
});
