import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createClient, type FetchLike } from './client/client.ts';
import { routes } from './routes/registry.ts';
import type { RouteDefinition } from './routes/route.ts';

const { signal } = new AbortController();
const body = { spec: {} } as never;

type Client = ReturnType<typeof createClient>;
const calls: Readonly<Record<Exclude<keyof Client, 'request' | 'json' | 'agent'>, (client: Client) => unknown>> = {
  list: ({ list }) => list('event', { project: 'p', selector: 's', subject: 'x', limit: 1, continue: 'c' }),
  get: ({ get }) => get('host', 'h1', { project: 'p' }),
  create: ({ create }) => create('size', body),
  workloadRevisions: ({ workloadRevisions }) => workloadRevisions('w', { project: 'p' }),
  undoWorkload: ({ undoWorkload }) => undoWorkload('w', { to: 1 }, { project: 'p' }),
  scaleWorkload: ({ scaleWorkload }) => scaleWorkload('w', { replicas: 2 }, { project: 'p', dryRun: true }),
  workloadEndpoints: ({ workloadEndpoints }) => workloadEndpoints('w', { project: 'p' }),
  runJobTemplate: ({ runJobTemplate }) => runJobTemplate('x'),
  claimWarmGuest: ({ claimWarmGuest }) => claimWarmGuest('w', {}, { project: 'p', idempotencyKey: 'k' }),
  dryRun: ({ dryRun }) => dryRun('size', body),
  dryRunOfDelete: ({ dryRunOfDelete }) => dryRunOfDelete('pool', 'p1'),
  dryRunOfChange: ({ dryRunOfChange }) => dryRunOfChange('pool', 'p1', body),
  createInstances: ({ createInstances }) => createInstances([body]),
  replace: ({ replace }) => replace('pool', 'p1', body),
  delete: (client) => client.delete('host', 'h1', { project: 'p', ifRevision: 1, force: true }),
  watch: ({ watch }) => first(watch('image', { revision: 1, epoch: 'e', project: 'p' })),
  watchKinds: ({ watchKinds }) => first(watchKinds({ kinds: ['host', 'event'], revision: 1, epoch: 'e' })),
  plan: ({ plan }) => plan(body, { limit: 1, continue: '2' }),
  candidates: ({ candidates }) => candidates(body),
  queue: ({ queue }) => queue({ project: 'p', limit: 1 }),
  capacity: ({ capacity }) => capacity({ losses: 1 }),
  verify: ({ verify }) => verify(),
  auditLog: ({ auditLog }) => auditLog({ since: 1, who: 'ci', object: 'web', limit: 1, continue: '2' }),
  checkAuditLog: ({ checkAuditLog }) => checkAuditLog(),
  servers: ({ servers }) => servers(),
  masterKeys: ({ masterKeys }) => masterKeys(),
  authorityStatus: ({ authorityStatus }) => authorityStatus(),
  rotateAuthority: ({ rotateAuthority }) => rotateAuthority({ overlapMs: 0 }),
  finishAuthorityRotation: ({ finishAuthorityRotation }) => finishAuthorityRotation({ force: true }),
  webhookDeliveries: ({ webhookDeliveries }) => webhookDeliveries('w', { project: 'p' }),
  resendDelivery: ({ resendDelivery }) => resendDelivery('w', 'evt_1', { project: 'p' }),
  testWebhook: ({ testWebhook }) => testWebhook('w', { project: 'p' }),
  pushNodes: ({ pushNodes }) => pushNodes('metal', []),
  confirmInventory: ({ confirmInventory }) => confirmInventory('metal', 'abc'),
  hostToken: ({ hostToken }) => hostToken('h1'),
  declareHostDown: (client) => client.declareHostDown('h1', { reason: 'power is off' }),
  createToken: ({ createToken }) =>
    createToken({ metadata: { name: 'ci', labels: {} }, spec: { description: '', role: 'viewer' } }),
  extendToken: ({ extendToken }) => extendToken('ci', { expiresInSec: 60 }),
  share: ({ share }) => share('web', { project: 'default', verbs: ['console'] }),
  rotateAdminToken: ({ rotateAdminToken }) => rotateAdminToken('a'.repeat(64)),
  whoAmI: ({ whoAmI }) => whoAmI(),
  createSessionLink: ({ createSessionLink }) => createSessionLink(),
  canI: ({ canI }) => canI({ verb: 'read', resource: 'host' }),
  resizeInstance: ({ resizeInstance }) => resizeInstance('i1', { project: 'p1' }, { cpus: 2 }),
  migrateInstance: ({ migrateInstance }) => migrateInstance('i1', { project: 'p1' }),
  cancelMigration: ({ cancelMigration }) => cancelMigration('i1', { project: 'p1' }),
  drainHost: ({ drainHost }) => drainHost('h1', { apply: 'abc' }),
  rebalance: ({ rebalance }) => rebalance({ pool: 'web', apply: 'abcdefgh' }),
  showDrain: ({ showDrain }) => showDrain('h1'),
  cancelDrain: ({ cancelDrain }) => cancelDrain('h1'),
  restoreHost: ({ restoreHost }) => restoreHost('h1', { apply: 'abcdefgh' }),
  showRestore: ({ showRestore }) => showRestore('h1'),
  cancelRestore: ({ cancelRestore }) => cancelRestore('h1'),
  rollHosts: ({ rollHosts }) => rollHosts({ pool: 'web', apply: 'abcdefgh' }),
  showRoll: ({ showRoll }) => showRoll(),
  pauseRoll: ({ pauseRoll }) => pauseRoll(true),
  cancelRoll: ({ cancelRoll }) => cancelRoll(),
  evacuateHost: ({ evacuateHost }) => evacuateHost('h1'),
  usage: ({ usage }) => usage({ host: 'h1', limit: 1, continue: 'c' }),
  fleetMap: ({ fleetMap }) => fleetMap({ labels: 'zone' }),
  projectTotals: ({ projectTotals }) => projectTotals({ project: 'p' }),
  projectUsage: ({ projectUsage }) => projectUsage('p'),
  providers: ({ providers }) => providers('h1'),
  ledgerProvider: ({ ledgerProvider }) => ledgerProvider('h1'),
  explain: ({ explain }) => explain('web-1', { project: 'p', limit: 1, continue: '2' }),
  instanceUsage: ({ instanceUsage }) => instanceUsage('web'),
  allInstanceUsage: ({ allInstanceUsage }) => allInstanceUsage(),
  cancelJob: ({ cancelJob }) => cancelJob('ci-1', { project: 'p' }),
  retryJob: ({ retryJob }) => retryJob('ci-1', { project: 'p' }),
  createJobRequest: ({ createJobRequest }) => createJobRequest({}, { project: 'p' }),
  deadLetters: ({ deadLetters }) => deadLetters(),
  deadLetter: ({ deadLetter }) => deadLetter('d1'),
  retryDeadLetter: ({ retryDeadLetter }) => retryDeadLetter('d1'),
  dropDeadLetter: ({ dropDeadLetter }) => dropDeadLetter('d1'),
  jobLog: ({ jobLog }) => first(jobLog('ci-1', { project: 'p', attempt: 1, offset: 1, follow: true })),
  jobArtifacts: ({ jobArtifacts }) => first(jobArtifacts('ci-1', { project: 'p', attempt: 1 })),
  log: ({ log }) => first(log('web-1', { project: 'p', offset: 1, follow: true })),
};
const agentCalls: Readonly<Record<keyof ReturnType<Client['agent']>, (agent: ReturnType<Client['agent']>) => unknown>> =
  {
    register: ({ register }) => register(body),
    heartbeat: ({ heartbeat }) => heartbeat(body),
    report: ({ report }) => report(body),
    sendRunPart: ({ sendRunPart }) =>
      sendRunPart({ instanceId: 'inst_1', incarnation: 1, epoch: 1, part: 'log', offset: 0, bytes: new Uint8Array(1) }),
    moveManifest: ({ moveManifest }) => moveManifest({ instanceId: 'inst_1', id: 'mig_1', epoch: 1 }, signal),
    readMove: ({ readMove }) =>
      readMove({ instanceId: 'inst_1', id: 'mig_1', epoch: 1, name: 'disk', offset: 0, length: 1 }, signal),
    assignments: ({ assignments }) => first(assignments(1, signal)),
  };

async function first(items: AsyncIterable<unknown>): Promise<void> {
  await items[Symbol.asyncIterator]().next();
}

/** The routes that the client called; `undefined`: there is no such route. */
async function routesAsked(call: (client: Client) => unknown): Promise<(RouteDefinition | undefined)[]> {
  const asked: (RouteDefinition | undefined)[] = [];
  const fetch: FetchLike = (text, { method }) => {
    const { pathname, searchParams } = new URL(text);
    const route = routes.find((each) => each.method === method && pattern(each.path).test(pathname));
    const known = Object.keys(route?.query ?? {});
    asked.push([...searchParams.keys()].every((name) => known.includes(name)) ? route : undefined);
    return Promise.resolve({ status: 200, headers: { get: () => null }, body: null, text: async () => '{}' });
  };
  // An agent rejects the empty response, after the request was sent.
  await Promise.resolve(call(createClient({ fetch, url: 'http://server' }))).catch(() => {});
  return asked;
}

function pattern(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`);
}

describe('the client asks only for what is in the registry of routes, with', () => {
  it.each(Object.entries(calls))('%s', async (_, call) =>
    expect(await routesAsked(call)).toEqual([expect.objectContaining({ id: expect.any(String) })]),
  );
  it.each(Object.entries(agentCalls))('%s of an agent', async (_, call) =>
    expect(await routesAsked(({ agent }) => call(agent('h1')))).toEqual([expect.objectContaining({ tag: 'agent' })]),
  );
});

it("finds every path that Berth's own programs spell out in the registry", () => {
  const source = join(import.meta.dirname, '..');
  const known = new Set(routes.map(({ path }) => path.replaceAll(/:\w+/g, '*')));
  const found: string[] = [];
  const faults: string[] = [];
  for (const folder of ['api', 'cli', 'commands', 'agent']) {
    for (const file of readdirSync(join(source, folder), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts') || file.endsWith('.test.ts') || file.startsWith('routes/')) continue;
      const code = readFileSync(join(source, folder, file), 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*).*$/gm, '');
      for (const [, , text = ''] of code.matchAll(/(['`])(?:\$\{[\w.]*[uU]rl\})?(\/v1\/[^'`?\n]*)/g)) {
        const path = text.replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '*');
        found.push(path);
        const ofAKind = /^\/v1\/\*(s|$|\/)/.test(path); // pathOf, which user-client.test.ts holds to the registry
        if (!known.has(path) && !ofAKind) faults.push(`${folder}/${file}: ${path}`);
      }
    }
  }
  expect(found).toContain('/v1/images/*/content');
  expect(faults).toEqual([]);
});
