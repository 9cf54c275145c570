// Which test shows what comes of an attack: a row for each, so that a test that is removed or renamed is missed.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemFetch } from '../../../base/system.ts';
import { testBinding, testToken } from '../../../core/access/testing.ts';
import { keyOf } from '../../../core/state/keys.ts';
import { startTestServer, testRegistration } from '../../testing.ts';

const source = join(import.meta.dirname, '../../..');
const files = {
  attacks: 'server/http/access-matrix/attacks.test.ts',
  tickets: 'server/http/access-matrix/tickets.test.ts',
  authenticate: 'server/http/identity/authenticate.test.ts',
  overHttp: 'server/http/identity/tokens-over-http.test.ts',
  waysIn: 'server/http/identity/ways-in.test.ts',
  arrival: 'server/http/arrival.test.ts',
  tokens: 'core/operations/access/token.test.ts',
  roles: 'core/operations/access/role-rules.test.ts',
  uses: 'core/access/uses.test.ts',
  secrets: 'core/operations/secret.test.ts',
  claims: 'core/operations/host-claims.test.ts',
  reports: 'core/operations/report.test.ts',
  idToken: 'server/oidc/id-token.test.ts',
  issuer: 'server/oidc/issuer.test.ts',
  workloads: 'server/oidc/workload-rules.test.ts',
  groups: 'server/oidc/user-claims.test.ts',
  joining: 'server/tls/joining.real.test.ts',
  certificates: 'server/tls/certificates.test.ts',
  renewal: 'agent/enrolment/host-credentials.test.ts',
  link: 'server/http/agent-link/agent-link-attacks.test.ts',
  images: 'agent/images/fetch/http-get.test.ts',
  disks: 'agent/images/create-image-cache.real.test.ts',
  fullDisk: 'server/audit/full-disk.real.test.ts',
  chain: 'server/audit/verify-log.test.ts',
  sealed: 'server/sealing/sealed-store.test.ts',
  here: 'server/http/access-matrix/attack-rows.test.ts',
} as const;

const rows: readonly (readonly [attack: string, keyof typeof files, title: string])[] = [
  // Tokens
  ['a truncated token', 'authenticate', 'a truncated token'],
  ['a wrong checksum', 'authenticate', 'a wrong CRC'],
  ['a known id with a wrong secret', 'authenticate', 'a known id and a wrong secret'],
  ['an expired token', 'authenticate', 'an expired token'],
  ['a token that is revoked in use', 'overHttp', 'that is revoked opens nothing, and what it has open ends'],
  ['a token that another server has revoked', 'overHttp', 'refuse what another has revoked at once'],
  ['a revoked token while the store is cut off', 'overHttp', 'refuse everybody once the store is cut off'],
  ['a token in the query', 'authenticate', 'a token in the query'],
  ['a token in two headers', 'arrival', 'two tokens, the second in capitals'],
  ['a token as a password', 'authenticate', 'Basic'],
  ['a token of 4 KiB', 'authenticate', '4 KiB'],
  ['a token in logs and errors', 'overHttp', 'is told why it does not count, and is in no error'],
  ['the name of a revoked token, made again', 'authenticate', 'a revoked token whose name was given again'],
  ['a token whose maker lost rights', 'tokens', 'depends on the token that made it, which never gives more'],
  ['the token of a removed host', 'joining', 'of a host that was removed does not work when the name is created again'],
  // Rights
  ['a binding of itself to more', 'roles', 'of itself to more'],
  ['an edit of a role that one has', 'overHttp', 'an editor cannot give a role more than they have'],
  ['a token with more than its maker', 'tokens', 'a role that permits more'],
  ['a PUT of status', 'here', 'keeps its status when it is changed'],
  ['a PUT that moves to another project', 'here', 'stays in its project'],
  ['a label of another project', 'attacks', 'do not follow a label of another project'],
  ['a priority', 'attacks', 'a priority'],
  ['a pool without the right to use it', 'uses', 'use pool gpu in web for spec.placement.pool'],
  ['a volume of others', 'attacks', 'a volume of another project'],
  ['a secret of others', 'secrets', 'does not reach a secret of another project'],
  ['an image of its own', 'attacks', 'is no image for users: neither new, nor changed, nor of a disk'],
  ['an image with a backing file', 'disks', 'with a backing file'],
  ['a file as an image', 'attacks', 'a file as an image'],
  ['an image of a metadata service', 'images', 'http://169.254.169.254/latest/'],
  ['a batch with an item of others', 'attacks', 'is refused item by item in a batch'],
  ['names of others in explanations', 'attacks', 'name no hosts and nothing of others'],
  ['a watch that outlives its binding', 'overHttp', 'ends a watch whose binding went'],
  ['the page of another', 'attacks', 'that begin where those of another ended show the own only'],
  ['paths in names', 'attacks', 'lead nowhere'],
  ['names that hide text, and words of JavaScript', 'attacks', 'as JSON keys that JavaScript knows change no rights'],
  ['a way into a guest by plain GET', 'attacks', 'that ask for a way into a guest by plain GET'],
  ['a project named twice', 'attacks', 'that name a project twice'],
  ['telling what is of others from what is not there', 'attacks', 'get the same answer about what is of others'],
  ['the idempotency key of another', 'attacks', 'with the idempotency key of another learn nothing'],
  // Tickets
  ['a ticket used twice', 'tickets', 'opens what it is for, once'],
  ['a ticket of another instance', 'tickets', 'another instance of the project'],
  ['a ticket of another incarnation', 'tickets', 'is for one incarnation of a guest'],
  ['a ticket of a revoked token', 'waysIn', 'opens nothing once its maker was revoked'],
  ['a page of a foreign origin', 'tickets', 'a token that a page sends along opens nothing'],
  // Logins
  ['an ID token without a signature', 'idToken', 'without a signature (alg: none)'],
  ['an ID token signed with the public key', 'idToken', 'signed by HS256 with the public key as the secret'],
  ['an ID token without an audience', 'idToken', 'without aud'],
  ['an ID token with several audiences', 'idToken', 'for several audiences without azp'],
  ['an issuer with a slash', 'idToken', 'of the issuer with a slash'],
  ['a flood of unknown keys', 'issuer', 'are read once in 30 s, however many unknown keys tokens name'],
  ['keys that redirect', 'issuer', 'when its keys redirect'],
  ['keys of 10 MB', 'issuer', 'when its keys have 10 MB'],
  ['a clock that is off by 61 s', 'idToken', '61 s before it was issued'],
  ["a fork's pull request", 'workloads', 'a fork, although its merge request is named'],
  ['a repository made again under an old name', 'workloads', 'a repository made again under an old name'],
  ['groups that were left out', 'groups', '_claim_names'],
  // Hosts
  ['a join token by two at once', 'joining', 'has one use, also for two at once'],
  ['a certificate request for another host', 'certificates', 'takes nothing from the request of a host but its key'],
  ['a host on routes of others', 'joining', 'opens the routes of its host, and no others'],
  ['the certificate of a host as that of a server', 'joining', 'is of no use to a server'],
  ['a resumed session of a removed host', 'joining', 'does not resume sessions of'],
  ['a clock that is off by a day', 'renewal', 'when the clock was set a day ahead'],
  ['a host with 2³¹ CPUs', 'claims', '2 ** 31'],
  ['a report on the guest of another host', 'reports', 'from a host that does not hold it'],
  ['a flood of HTTP/2 frames', 'link', 'a host that attacks on its own line loses it'],
  // The rest
  ['a request in a request', 'arrival', 'a length and chunks'],
  ['bare line ends', 'arrival', 'line ends without a carriage return'],
  ['slow headers', 'arrival', 'a request that comes too slowly is refused'],
  ['a full disk of the audit log', 'fullDisk', 'a full disk refuses changes, not heartbeats'],
  ['a deleted file of the audit log', 'chain', 'the last file was deleted'],
  ['a cut tail of the audit log', 'chain', 'the tail was cut off'],
  ['swapped values in the store', 'sealed', 'moved to another name'],
  ['another master key', 'sealed', 'refuses another master key'],
];

it.each(rows)('%s has its test', (_attack, file, title) => {
  expect(readFileSync(join(source, files[file]), 'utf8')).toContain(title);
});

describe('whatever a client sends, a resource', () => {
  const holders = {
    boss: testToken('boss', { role: 'project-admin', project: 'web' }),
    operator: testToken('operator', { role: 'fleet-operator' }),
  };

  async function scene() {
    const server = await startTestServer();
    onTestFinished(() => server.close());
    const given = testBinding('given', {
      role: 'viewer',
      project: 'web',
      subjects: [{ kind: 'token', name: 'boss' }],
    });
    const changes = [...Object.values(holders), given].map((value) => ({ key: keyOf(value), ifRevision: 0, value }));
    expect((await server.plane.decider.committer.submit({ changes })).ok).toBe(true);
    const { client } = server;
    await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.test/tiny' } });
    await client.create('size', { metadata: { name: 'small' }, spec: { cpus: 1, memoryMiB: 64 } });
    await server.agentClient('h1').register(testRegistration());
    const metadata = { name: 'it', project: 'web' };
    await client.create('job', { metadata, spec: { image: 'tiny', cpus: 1, script: 'true' } });
    await client.create('volume', { metadata, spec: { sizeGiB: 1 } });
    await client.create('group', { metadata, spec: {} });
    const ask = async (who: string, method: string, path: string, body?: unknown) => {
      const answer = await systemFetch(`${server.url}${path}`, {
        method,
        headers: {
          authorization: who === 'admin' ? 'Bearer operator' : `Bearer token:${who}`,
          'content-type': 'application/json',
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: answer.status, json: JSON.parse(await answer.text()) as Record<string, object> }; // of the API
    };
    return { ask };
  }
  const inProject = [
    ['jobs', { phase: 'Succeeded', result: { exitCode: 0 } }],
    ['volumes', { phase: 'Ready', host: 'h1', attachedTo: 'inst_x' }],
    ['groups', { members: ['inst_x'] }],
  ] as const;
  const withStatus = [
    ...inProject.map(([kind, status]) => ['boss', `/v1/${kind}/it?project=web`, status] as const),
    ['operator', '/v1/hosts/h1', { state: 'ready', epoch: 99, generation: 99 }],
    ['operator', '/v1/images/tiny', { hosts: ['h1'] }],
    ['boss', '/v1/bindings/given', { role: 'admin' }],
    ['boss', '/v1/tokens/boss', { tokenId: 'aaaaaaaaaa', expiresAtMs: 9e15 }],
  ] as const;

  it('keeps its status when it is changed', async () => {
    const { ask } = await scene();
    for (const [who, path, status] of withStatus) {
      const before = await ask('admin', 'GET', path);
      expect([path, before.status]).toEqual([path, 200]);
      await ask(who, 'PUT', path, { ...before.json, status });
      expect([path, (await ask('admin', 'GET', path)).json['status']]).toEqual([path, before.json['status']]);
    }
  });

  it('stays in its project, under its id', async () => {
    const { ask } = await scene();
    for (const [kind] of inProject) {
      const path = `/v1/${kind}/it?project=web`;
      const before = await ask('boss', 'GET', path);
      for (const change of [{ project: 'api' }, { id: 'x_00000000000000000000000000' }, { name: 'other' }]) {
        const metadata = { ...before.json['metadata'], ...change };
        const { status } = await ask('boss', 'PUT', path, { ...before.json, metadata });
        expect([path, change, status >= 400]).toEqual([path, change, true]);
      }
      expect((await ask('admin', 'GET', `/v1/${kind}/it?project=api`)).status).toBe(404);
    }
  });
});
