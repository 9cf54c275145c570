// Ways into guests when rights end: tickets of those who lost them, and connections that are open.

import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accessSubprotocol } from '../../../api/access-protocol.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { issueToken, revokeToken } from '../../../core/operations/access/token.ts';
import { replaceOperator } from '../../../core/operations/servers/cluster.ts';
import { keys } from '../../../core/state/keys.ts';
import { testInstance } from '../../../core/testing.ts';
import { encodeRecord } from '../../../core/state/codec.ts';
import { decideAndCommit } from '../../decide.ts';
import { startTestServer, testStore } from '../../testing.ts';
import { type GuestAccess, guestAccess } from '../guest-access.ts';
import type { HostLinks } from '../agent-link/host-links.ts';
import { Query } from '../route.ts';
import { LiveSessions } from './live-sessions.ts';

type TestServer = Awaited<ReturnType<typeof startTestServer>>;

const handshake = { 'sec-websocket-key': 'k', 'sec-websocket-version': '13' };
const admin: Principal = { kind: 'admin' };

let server: TestServer;
let live: LiveSessions;
let access: GuestAccess;
let opened: PassThrough[];
let slow: Promise<void> | undefined;

beforeEach(async () => {
  const store = testStore();
  for (const name of ['a', 'b']) {
    const instance = testInstance(name, {}, { phase: 'Running', host: 'h1', incarnation: 1 });
    await store.commit([], [{ key: keys.instance('default', name), value: encodeRecord(instance) }]);
  }
  server = await startTestServer({ store });
  opened = [];
  slow = undefined;
  const links: HostLinks = {
    get: () => Promise.reject(new Error('not here')),
    async open() {
      await slow;
      const guest = new PassThrough();
      opened.push(guest);
      return guest;
    },
  };
  const { decider } = server.plane;
  live = new LiveSessions({ cache: decider.cache, clock: decider.clock });
  access = guestAccess({ decider, links, secret: Buffer.alloc(32, 'x'), live });
});
afterEach(async () => {
  live.stop();
  await server.close();
});

async function bearer(name: string): Promise<Principal & { readonly kind: 'token' }> {
  const { decider } = server.plane;
  const proof = { tokenId: name.padStart(10, '0'), digest: 'd'.repeat(64) };
  const spec = { description: '', role: 'user', project: 'default' };
  await decideAndCommit(decider, (snapshot, ctx) => issueToken(snapshot, { name, spec, proof }, ctx));
  const uid = decider.cache.get('token', keys.token(name))?.value.metadata.id ?? '';
  return { kind: 'token', name, uid, tokenId: proof.tokenId };
}

const revoke = (name: string) => decideAndCommit(server.plane.decider, (snapshot) => revokeToken(snapshot, { name }));

function enter(path: string, principal: Principal | undefined, headers: Record<string, string> = {}) {
  const protocols = [accessSubprotocol, ...(headers['ticket'] ? [headers['ticket']] : [])].join(', ');
  return access.open({
    path: `/v1/instances/${path}`,
    headers: { ...handshake, ...headers, 'sec-websocket-protocol': protocols },
    principal,
    requestId: 'req',
    address: '::1',
    signal: new AbortController().signal,
  });
}

/** The subprotocol with a ticket for the console of `a`. */
async function ticketOf(principal: Principal): Promise<string> {
  const [route] = access.routes;
  const answer = await route?.handle({
    params: { name: 'a' },
    query: new Query([]),
    body: { way: 'console' },
    headers: {},
    caller: { principal, requestId: 'req', address: '::1', face: 'http' },
    signal: new AbortController().signal,
  });
  const made = answer && 'json' in answer ? (answer.json as { protocols: string[] }) : { protocols: [] }; // the route's own schema
  return made.protocols[1] ?? '';
}

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'open',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );

describe('a connection to a guest', () => {
  it('is closed when the token is revoked, and no other is', async () => {
    const [ann, bob] = [await bearer('ann'), await bearer('bob')];
    for (const principal of [ann, bob, admin]) await enter('a/console', principal);
    await revoke('ann');
    expect(opened.map(({ destroyed }) => destroyed)).toEqual([true, false, false]);
    expect(live.count).toBe(2);
  });

  it('is closed at its beginning when the token is revoked while the host opens it', async () => {
    const ann = await bearer('ann');
    const hold = Promise.withResolvers<void>();
    slow = hold.promise;
    const entering = codeOf(enter('a/exec', ann));
    await revoke('ann');
    hold.resolve();
    expect(await entering).toBe('Unauthenticated');
    expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
    expect(live.count).toBe(0);
  });

  it('is forgotten when it ends', async () => {
    const guest = await enter('a/console', await bearer('ann'));
    expect(live.count).toBe(1);
    guest.destroy();
    await new Promise((resolve) => guest.once('close', resolve));
    expect(live.count).toBe(0);
  });

  it('is closed when the admin token is replaced', async () => {
    await enter('a/console', admin);
    await decideAndCommit(server.plane.decider, (snapshot, ctx) => replaceOperator(snapshot, 'b'.repeat(64), ctx));
    expect(opened.map(({ destroyed }) => destroyed)).toEqual([true]);
  });
});

describe('a ticket', () => {
  it('opens one connection, for what it was made, to its bearer', async () => {
    const ticket = await ticketOf(await bearer('ann'));
    expect(await codeOf(enter('b/console', undefined, { ticket }))).toBe('Forbidden');
    expect(await codeOf(enter('a/exec', undefined, { ticket }))).toBe('Forbidden');
    expect(await codeOf(enter('a/console', undefined, { ticket, origin: 'https://page.test' }))).toBe('open');
    expect(await codeOf(enter('a/console', undefined, { ticket }))).toBe('Unauthenticated');
  });

  it('opens nothing once its maker was revoked', async () => {
    const ticket = await ticketOf(await bearer('ann'));
    await revoke('ann');
    expect(await codeOf(enter('a/console', undefined, { ticket }))).toBe('Unauthenticated');
    await bearer('ann'); // another of the same name
    expect(await codeOf(enter('a/console', undefined, { ticket }))).toBe('Unauthenticated');
  });

  it('opens nothing once the admin token that made it was replaced', async () => {
    const ticket = await ticketOf(admin);
    await decideAndCommit(server.plane.decider, (snapshot, ctx) =>
      replaceOperator(snapshot, 'b'.repeat(64), { nowMs: ctx.nowMs + 1 }),
    );
    expect(await codeOf(enter('a/console', undefined, { ticket }))).toBe('Unauthenticated');
  });

  it('is needed by pages, whatever token their browser has', async () => {
    const ann = await bearer('ann');
    expect(await codeOf(enter('a/console', ann, { origin: 'https://page.test' }))).toBe('Forbidden');
  });
});
