import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { accessSubprotocol } from '../../../api/access-protocol.ts';
import { type Kind, resourceDefinitions } from '../../../api/resources/index.ts';
import { agentRoutes } from '../../../api/routes/agent.ts';
import { routes } from '../../../api/routes/registry.ts';
import type { RouteDefinition } from '../../../api/routes/route.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { isRecord } from '../../../base/is-record.ts';
import { admit, toApiError } from '../exchange.ts';
import { type GuestAccess, guestAccess } from '../guest-access.ts';
import type { HostLinks } from '../agent-link/host-links.ts';
import { type Answer, Query, type Route } from '../route.ts';
import { type Ask, asksOf } from './test-asks.ts';
import { type Column, columns, principalOf, type Scene, secretOf, sides, startScene } from './test-scene.ts';

const legend = `# Who may do what: each route by each role, about what is in the project of the role (own, ours) and in another (foreign, theirs).
# Written by the test beside it (vitest -u); read every change of it as a change of rights.
#
#   +           permitted                  401 403 404 ...   the status of the refusal
#   +secret     with user-data, environments and commands       +place   only where it is, not even its name
#   ours theirs both    of a list or watch: whose resources are in it; fleet: those of no project; self: one's own token; none
#
# viewer, user, project-admin and share (of one instance, for its console and logs) are in one project; fleet-operator, metrics and
# admin are held in the whole fleet. host is the agent of the host of the own project; removed has a token that was deleted.
`;

const links: HostLinks = {
  get: () => Promise.resolve({ headers: { 'berth-disk-bytes': '1' }, body: bytesOf('x') }),
  open: () => Promise.resolve(new PassThrough()),
};
const kinds = new Map<string, Kind>(Object.values(resourceDefinitions).map(({ plural, kind }) => [plural, kind]));

let scene: Scene;
let access: GuestAccess;
let served: Map<string, Route>;
beforeAll(async () => {
  scene = await startScene(links);
  access = guestAccess({ decider: scene.plane.decider, links, secret: Buffer.alloc(32, 'x') });
  served = new Map([...scene.plane.routes, ...access.routes].map((route) => [`${route.method} ${route.path}`, route]));
});
afterAll(() => scene.stop());

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(text);
}

interface Outcome {
  readonly status: number;
  readonly text: string;
}

async function outcomeOf(definition: RouteDefinition, ask: Ask, principal: Principal | undefined): Promise<Outcome> {
  const { params = {}, body = {} } = ask;
  const staged = await scene.reset();
  const query = Object.fromEntries(
    Object.entries(ask.query ?? {}).map(([name, value]) => [name, value === '@' ? String(staged - 1) : value]),
  );
  const route = served.get(`${definition.method} ${definition.path}`);
  if (!route && !definition.upgrade) throw new Error(`${definition.id} is not served`);
  const gone = new AbortController();
  try {
    if (!route) return await upgraded(definition, { params, query }, principal);
    const { cache } = scene.plane.decider;
    const admitted = admit(route, principal, { host: params['host'], snapshot: cache });
    const caller = { principal: admitted, requestId: 'r', address: '', face: 'http' } as const;
    const sent = route.takesBytes ? bytesOf('x') : route.takesUnparsedJson ? bytesOf('{}') : body;
    const asked = { params, query: new Query(Object.entries(query)), headers: {}, body: sent, caller };
    const answer = await route.handle({ ...asked, signal: gone.signal });
    return { status: answer.status, text: await textOf(answer, staged) };
  } catch (error) {
    const fault = toApiError(error);
    if (fault.code === 'Internal') throw error;
    return { status: fault.status, text: JSON.stringify(fault.toBody()) };
  } finally {
    gone.abort();
  }
}

/** Of a stream that does not end, as much as was there when it began. */
async function textOf(answer: Answer, staged: number): Promise<string> {
  if ('json' in answer) return JSON.stringify(answer.json);
  let text = '';
  if ('bytes' in answer) {
    for await (const bytes of answer.bytes) text += Buffer.from(bytes).toString();
    return text;
  }
  for await (const line of answer.lines) {
    text += `${JSON.stringify(line)}\n`;
    const type = isRecord(line) ? line['type'] : '';
    if (type !== 'put' && type !== 'delete' && type !== 'working' && type !== 'refused' && !isEarly(line, staged))
      break;
  }
  return text;
}

function isEarly(line: unknown, staged: number): boolean {
  return isRecord(line) && line['type'] === 'bookmark' && Number(line['revision']) < staged;
}

/** A connection to a guest, or the link of an agent. */
async function upgraded(
  { path, tag }: RouteDefinition,
  { params, query }: Required<Pick<Ask, 'params' | 'query'>>,
  principal: Principal | undefined,
): Promise<Outcome> {
  if (tag === 'agent') {
    admit(agentRoutes.link, principal, { host: params['host'], snapshot: scene.plane.decider.cache });
    return { status: 101, text: '' };
  }
  const filled = path.replaceAll(/:(\w+)/g, (_all, name: string) => params[name] ?? '');
  const headers = {
    'sec-websocket-protocol': accessSubprotocol,
    'sec-websocket-key': 'x',
    'sec-websocket-version': '13',
  };
  const { signal } = new AbortController();
  await access.open({
    path: `${filled}?${new URLSearchParams(query).toString()}`,
    headers,
    principal,
    signal,
    requestId: 'r',
    address: '',
  });
  return { status: 101, text: '' };
}

/** As the table has it. */
function cellOf({ status, text }: Outcome, { method, path }: RouteDefinition): string {
  if (status >= 400) return String(status);
  if (path.endsWith('/batch') && text.includes('"Forbidden"')) return '403 each';
  const byName = sides.filter((side) => namesOf(side).test(text));
  const byPlace = sides.filter((side) => text.includes(`0${side}`));
  const isList = method === 'GET' && !path.includes('/:') && /^\{"(waiting|items|type)"/.test(text);
  if (isList && kindsOfFleet.test(path)) return '+';
  if (isList) {
    const found = byPlace.length > 0 ? byPlace : byName;
    const other = text.includes('0fleet') ? 'fleet' : text.includes('"by-') ? 'self' : 'none';
    const whose = found.length === 2 ? 'both' : (found[0] ?? other);
    return found.length > byName.length ? `${whose}+place` : whose;
  }
  if (sides.some((side) => text.includes(secretOf(side)))) return '+secret';
  return byPlace.length > 0 && byName.length === 0 ? '+place' : '+';
}

/** Which need not be told apart by project. */
const kindsOfFleet = /\/(hosts|images|sizes|pools|roles|dead-letters|login|join-tokens|usage)$/;

function namesOf(side: string): RegExp {
  // Sums of projects are named by their project alone.
  return new RegExp(`${side}-|"name":"${side}"|^{"items":\\[{"project"(:.*"project")?:"${side}"`);
}

/** What may not be in an answer to somebody who has a role in our project only, or in none. */
const strangers: ReadonlySet<Column> = new Set<Column>([
  'viewer',
  'user',
  'project-admin',
  'metrics',
  'share',
  'host',
  'removed',
  'stranger',
]);

function leakOf(column: Column, { text }: Outcome, ask: Ask): string | undefined {
  const asked = JSON.stringify(ask);
  const words = ['secret-of-theirs', 'theirs-web', 'theirs-runner', 'theirs-waiting', 'theirs', 'rack-theirs'];
  if (strangers.has(column)) return words.find((word) => text.includes(word) && !asked.includes(word));
  if (column === 'fleet-operator')
    return ['secret-of', 'ours-', 'theirs-'].find(
      (word) => text.replaceAll(/rack-(ours|theirs)/g, '').includes(word) && !asked.includes(word),
    );
  return undefined;
}

/** The same about a project that there is not, with a name much like the other's. */
function aboutNothing(ask: Ask): Ask {
  return JSON.parse(JSON.stringify(ask).replaceAll('theirs', 'zheirs')) as Ask; // of the same form
}

it('is as the table says', async () => {
  const rows: string[][] = [];
  const leaks: string[] = [];
  const differences: string[] = [];
  for (const definition of routes) {
    for (const [name, ask] of Object.entries(asksOf(definition, kinds))) {
      const cells: string[] = [];
      for (const column of columns) {
        const outcome = await outcomeOf(definition, ask, principalOf(column));
        const row = `${definition.id} ${name} by ${column}`;
        cells.push(cellOf(outcome, definition));
        const leak = leakOf(column, outcome, ask);
        if (leak !== undefined) leaks.push(`${row} tells of ${leak}: ${outcome.text.slice(0, 400)}`);
        if (!strangers.has(column) || !name.startsWith('foreign') || outcome.status < 400) continue;
        const unknown = await outcomeOf(definition, aboutNothing(ask), principalOf(column));
        const expected = outcome.text.replaceAll('theirs', 'zheirs');
        if (unknown.status !== outcome.status || unknown.text !== expected)
          differences.push(`${row}: ${expected} but ${unknown.text} when there is none`);
      }
      rows.push([definition.method, definition.path, name, ...cells]);
    }
  }
  await expect(tableOf(rows)).toMatchFileSnapshot('access-matrix.txt');
  expect(leaks).toEqual([]);
  expect(differences).toEqual([]);
});

function tableOf(rows: readonly (readonly string[])[]): string {
  const all = [['', 'route', 'about', ...columns], ...rows];
  const widths = (all[0] ?? []).map((_, i) => Math.max(...all.map((row) => (row[i] ?? '').length)));
  const lines = all.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${legend}\n${lines.join('\n')}\n`;
}
