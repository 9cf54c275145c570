import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { accessSubprotocol } from '../../../api/access-protocol.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { testToken } from '../../../core/access/testing.ts';
import { keyOf, keys } from '../../../core/state/keys.ts';
import type { AnyRecord } from '../../../core/state/records.ts';
import { Query } from '../route.ts';
import { type GuestAccess, guestAccess } from '../guest-access.ts';
import type { HostLinks } from '../agent-link/host-links.ts';
import { toApiError } from '../exchange.ts';
import { principalOf, recordAt, type Scene, startScene } from './test-scene.ts';

const links: HostLinks = {
  get: () => Promise.reject(new Error('nothing is asked')),
  open: () => Promise.resolve(new PassThrough()),
};

let scene: Scene;
let access: GuestAccess;
beforeEach(async () => {
  scene = await startScene(links);
  await scene.reset();
  access = guestAccess({ decider: scene.plane.decider, links, secret: Buffer.alloc(32, 'x') });
});
afterEach(() => scene.stop());

const user = principalOf('user');
const signal = new AbortController().signal;

/** What a browser offers for a ticket. */
async function ticketFor(way: string, principal: Principal | undefined = user, name = 'ours-web'): Promise<string> {
  const [route] = access.routes;
  if (!route || !principal) throw new Error('there is no route of tickets');
  const caller = { principal, requestId: 'r', address: '', face: 'http' } as const;
  const query = new Query([['project', 'ours']]);
  const answer = await route.handle({ params: { name }, query, body: { way }, headers: {}, caller, signal });
  const { protocols } = 'json' in answer ? (answer.json as { protocols: string[] }) : { protocols: [] };
  return protocols.at(-1) ?? '';
}

interface Knock {
  readonly ticket?: string;
  readonly path?: string;
  readonly principal?: Principal | undefined;
  readonly origin?: string;
}

/** The code of the refusal; `opened`. */
async function knock({ ticket, path = 'ours-web/console', principal, origin }: Knock): Promise<string> {
  const headers = {
    'sec-websocket-protocol': [accessSubprotocol, ...(ticket === undefined ? [] : [ticket])].join(', '),
    'sec-websocket-key': 'x',
    'sec-websocket-version': '13',
    ...(origin === undefined ? {} : { origin }),
  };
  const request = { path: `/v1/instances/${path}?project=ours`, headers, principal, signal };
  return access.open({ ...request, requestId: 'r', address: '' }).then(
    () => 'opened',
    (error: unknown) => toApiError(error).code,
  );
}

/** Puts a record in the place of another. */
async function put(key: string, value: AnyRecord | null): Promise<void> {
  const ifRevision = scene.plane.decider.cache.committed('token', key)?.revision ?? scene.plane.decider.cache.revision;
  const outcome = await scene.plane.decider.committer.submit({ changes: [{ key, ifRevision, value }] });
  expect(outcome.ok).toBe(true);
}

it('opens what it is for, once', async () => {
  const ticket = await ticketFor('console');
  expect(await knock({ ticket, origin: 'https://dashboard.test' })).toBe('opened');
  expect(await knock({ ticket })).toBe('Unauthenticated');
});

it.each<[string, string, string]>([
  ['another way', 'ours-web/exec', 'Forbidden'],
  ['another port', 'ours-web/ports/22', 'Forbidden'],
  ['another instance of the project', 'ours-runner/console', 'Forbidden'],
  ['an instance of another project', 'theirs-web/console', 'NotFound'],
  ['none at all', 'nothing/console', 'NotFound'],
])('does not open %s, and is not used up by it', async (_name, path, code) => {
  const ticket = await ticketFor('console');
  expect(await knock({ ticket, path })).toBe(code);
  expect(await knock({ ticket })).toBe('opened');
});

it('is refused when it is cut, changed or sealed by another', async () => {
  const ticket = await ticketFor('console');
  const [content = '', seal = ''] = ticket.slice('berth.ticket.'.length).split('.');
  const fields: object = JSON.parse(Buffer.from(content, 'base64url').toString()) as object;
  const forged = Buffer.from(JSON.stringify({ ...fields, by: { kind: 'admin' } })).toString('base64url');
  const tries = [
    ticket.slice(0, -1),
    `berth.ticket.${content}`,
    `berth.ticket.${forged}.${seal}`,
    'berth.ticket..',
    'berth.ticket.',
  ];
  for (const tried of tries) expect(await knock({ ticket: tried })).toBe('Unauthenticated');
  // A ticket that does not count is not made good by a token beside it.
  expect(await knock({ ticket: ticket.slice(0, -1), principal: user })).toBe('Unauthenticated');
});

it('has the rights that its maker has when it is used', async () => {
  const ticket = await ticketFor('exec');
  await put(keys.token('by-user'), testToken('by-user', { role: 'viewer', project: 'ours' }));
  expect(await knock({ ticket, path: 'ours-web/exec' })).toBe('Forbidden');
});

it('ends with the token of its maker', async () => {
  const ticket = await ticketFor('console');
  await put(keys.token('by-user'), null);
  expect(await knock({ ticket })).toBe('Unauthenticated');
});

it('is for one incarnation of a guest', async () => {
  const ticket = await ticketFor('console');
  const web = recordAt('instances/ours/ours-web');
  if (web.kind !== 'instance') throw new Error('it is no instance');
  const { cache, committer } = scene.plane.decider;
  const { revision = 0 } = cache.committed('instance', keyOf(web)) ?? {};
  const again = { ...web, status: { ...web.status, incarnation: 2 } };
  await committer.submit({ changes: [{ key: keyOf(web), ifRevision: revision, value: again }] });
  expect(await knock({ ticket })).toBe('Forbidden');
});

it('is made only by those who may go that way themselves', async () => {
  for (const [column, way] of [
    ['viewer', 'console'],
    ['share', 'exec'],
    ['metrics', 'console'],
    ['removed', 'console'],
  ] as const)
    await expect(ticketFor(way, principalOf(column))).rejects.toMatchObject({
      code: column === 'metrics' || column === 'removed' ? 'NotFound' : 'Forbidden',
    });
});

it('is what a browser needs: a token that a page sends along opens nothing', async () => {
  expect(await knock({ principal: user })).toBe('opened');
  expect(await knock({ principal: user, origin: 'https://evil.test' })).toBe('Forbidden');
});
