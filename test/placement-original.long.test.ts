// Allocation candidates as OpenStack Placement finds them: the same providers and questions for the original, as Debian packages it,
// and for Berth. Known faults of the original (8.0.0) are left out of what is drawn:
// - `isolate` with one class in several groups: it adds amounts up over candidates;
// - a group without resources that only forbids traits: it finds nothing;
// - a group without a suffix that is met by what is shared alone, beside other groups: it finds some candidates only;
// - some questions with aggregates: it answers 500.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { type Prng, seededPrng } from '../src/base/prng.ts';
import { startTestServer } from '../src/server/testing.ts';

const installed = existsSync('/usr/lib/python3/dist-packages/placement');
const why = installed ? '' : ' (python3-placement of Debian is not installed)';
const traits = ['HW_CPU_X86_SSE', 'HW_CPU_X86_AVX2', 'COMPUTE_NODE'];
const shares = 'MISC_SHARES_VIA_AGGREGATE';
const classes = ['VCPU', 'MEMORY_MB', 'DISK_GB', 'SRIOV_NET_VF'];
const aggregates = [1, 2, 3].map((at) => `00000000-0000-4000-8000-00000000000${at}`);
const versions = [10, 12, 16, 17, 21, 22, 24, 25, 27, 28, 29, 31, 32, 33, 34, 35, 36, 36, 39, 39, 39, 39];
const caseCount = 25;
const questionsEach = 10;

type Call = readonly [method: string, path: string, body: object | null];
type Question = readonly [version: number, path: string];
interface Case {
  readonly setup: readonly Call[];
  readonly questions: readonly Question[];
  readonly teardown: readonly Call[];
}

describe.skipIf(!installed)(`candidates of the original${why}`, () => {
  it('are those of Berth', { timeout: 600_000 }, async () => {
    const prng = seededPrng(29);
    const cases = Array.from({ length: caseCount }, () => drawCase(prng));
    const program = fileURLToPath(new URL('placement-original.py', import.meta.url));
    const input = JSON.stringify(cases);
    const said = execFileSync('/usr/bin/python3', [program], {
      input,
      maxBuffer: 2 ** 28,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const expected = JSON.parse(said.toString()) as Answer[][];
    const server = await startTestServer();
    let compared = 0;
    for (const [at, { setup, questions, teardown }] of cases.entries()) {
      for (const [method, path, body] of setup)
        expect((await ask(server.url, { method, path, body }))[0], `${method} ${path}`).toBeLessThan(300);
      for (const [number, [version, path]] of questions.entries()) {
        const original = expected[at]?.[number];
        if (!original || original[0] === 500) continue;
        const answer = await ask(server.url, { method: 'GET', path, version });
        expect({ version, path, answer: comparable(answer) }).toEqual({ version, path, answer: comparable(original) });
        compared++;
      }
      for (const [method, path] of teardown) await ask(server.url, { method, path });
    }
    expect(compared).toBeGreaterThan((caseCount * questionsEach) / 2);
    await server.close();
  });
});

type Answer = readonly [status: number, body: CandidateBody | null];
interface CandidateBody {
  readonly allocation_requests?: readonly object[];
  readonly provider_summaries?: Readonly<Record<string, { readonly traits?: readonly string[] }>>;
  readonly errors?: readonly { readonly detail: string; readonly code?: string }[];
}

async function ask(
  url: string,
  { method, path, body, version = 39 }: { method: string; path: string; body?: object | null; version?: number },
): Promise<Answer> {
  const answer = await fetch(`${url}/placement${path}`, {
    method,
    headers: {
      'x-auth-token': 'operator',
      accept: 'application/json',
      'openstack-api-version': `placement 1.${version}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  return [answer.status, text === '' ? null : (JSON.parse(text) as CandidateBody)];
}

/** Without what has no order: candidates, the providers in them, and traits. */
function comparable([status, body]: Answer): object {
  if (!body?.allocation_requests)
    return { status, errors: body?.errors?.map(({ detail, code }) => [detail.trim(), code]) };
  return {
    status,
    requests: body.allocation_requests.map((request) => JSON.stringify(inOrder(request))).sort(),
    summaries: Object.fromEntries(
      Object.entries(body.provider_summaries ?? {}).map(([uuid, { traits: held, ...rest }]) => [
        uuid,
        { ...rest, traits: held?.toSorted() },
      ]),
    ),
  };
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, inOrder(each)]),
  );
}

function drawCase(prng: Prng): Case {
  const ids = Array.from({ length: 1 + prng.below(8) }, () => uuid(prng));
  const setup: Call[] = [];
  const teardown: Call[] = [];
  let sharing = false;
  for (const [at, id] of ids.entries()) {
    const url = `/resource_providers/${id}`;
    const parent = at > 0 && prng.chance(3, 5) ? { parent_provider_uuid: ids[prng.below(at)] } : {};
    setup.push(['POST', '/resource_providers', { name: id, uuid: id, ...parent }]);
    let generation = 0;
    const put = (part: string, body: object): void => {
      setup.push(['PUT', `${url}/${part}`, { resource_provider_generation: generation++, ...body }]);
    };
    const inventories = Object.fromEntries(some(prng, classes, 2).map((name) => [name, inventory(prng)]));
    const held = [...some(prng, traits, 3), ...some(prng, [shares], 6)];
    sharing ||= held.includes(shares);
    const member = some(prng, aggregates, 3);
    // What changes nothing is no new generation.
    if (Object.keys(inventories).length > 0) put('inventories', { inventories });
    if (held.length > 0) put('traits', { traits: held });
    if (member.length > 0) put('aggregates', { aggregates: member });
    const [used] = Object.keys(inventories);
    if (used === undefined || !prng.chance(2, 5)) continue;
    const consumer = `/allocations/${uuid(prng)}`;
    const allocations = { [id]: { resources: { [used]: 2 } } };
    const owner = { project_id: 'p', user_id: 'u', consumer_generation: null, consumer_type: 'INSTANCE' };
    setup.push(['PUT', consumer, { allocations, ...owner }]);
    teardown.push(['DELETE', consumer, null]);
  }
  // Children before their parents.
  for (const id of ids.toReversed()) teardown.push(['DELETE', `/resource_providers/${id}`, null]);
  const questions = Array.from({ length: questionsEach }, () => drawQuestion(prng, { ids, sharing }));
  return { setup, questions, teardown };
}

/** Two of any class can always be claimed. */
function inventory(prng: Prng): object {
  return {
    total: 2 + prng.below(4),
    max_unit: prng.chance(1, 2) ? 2 : 100,
    step_size: prng.chance(1, 4) ? 2 : 1,
    allocation_ratio: prng.chance(1, 2) ? 1.5 : 1,
  };
}

function drawQuestion(prng: Prng, fleet: { readonly ids: readonly string[]; readonly sharing: boolean }): Question {
  const version = one(prng, versions);
  const words: [string, string][] = [];
  const names = version < 33 ? ['1', '2', '3'] : ['_A', '_B', '_C'];
  const granular = version < 25 ? [] : names.slice(0, prng.below(4));
  const plain = granular.length === 0 || (!fleet.sharing && prng.chance(1, 2));
  const isolate = prng.chance(1, 3);
  const free = [...classes];
  for (const suffix of [...(plain ? [''] : []), ...granular]) {
    const wanted = 1 + prng.below(2);
    // With `isolate`, no class in two groups.
    const asked = isolate ? free.splice(0, Math.min(wanted, free.length)) : distinct(prng, classes, wanted);
    const resourceless = suffix !== '' && asked.length === 0;
    if (resourceless && version < 36) continue;
    if (asked.length > 0)
      words.push([`resources${suffix}`, asked.map((name) => `${name}:${1 + prng.below(2)}`).join()]);
    if (version >= 17 && (resourceless || prng.chance(1, 4))) {
      const forbid = !resourceless && version >= 22 && prng.chance(1, 3) ? '!' : '';
      words.push([`required${suffix}`, forbid + one(prng, traits)]);
      if (version >= 39 && prng.chance(1, 3))
        words.push([`required${suffix}`, `in:${distinct(prng, traits, 2).join()}`]);
    }
    if (version >= 21 && prng.chance(1, 5))
      words.push([
        `member_of${suffix}`,
        prng.chance(1, 2) ? one(prng, aggregates) : `in:${distinct(prng, aggregates, 2).join()}`,
      ]);
    if (version >= 32 && prng.chance(1, 10)) words.push([`member_of${suffix}`, `!${one(prng, aggregates)}`]);
    if (version >= 31 && prng.chance(1, 10)) words.push([`in_tree${suffix}`, one(prng, fleet.ids)]);
  }
  if (granular.length > 0) words.push(['group_policy', isolate ? 'isolate' : 'none']);
  if (version >= 35 && prng.chance(1, 6))
    words.push(['root_required', (prng.chance(1, 2) ? '!' : '') + one(prng, traits)]);
  if (version >= 36 && granular.length > 0 && prng.chance(1, 2)) words.push(['same_subtree', granular.join()]);
  return [version, `/allocation_candidates?${new URLSearchParams(words).toString()}`];
}

function one<T>(prng: Prng, items: readonly T[]): T {
  const item = items[prng.below(items.length)];
  if (item === undefined) throw new Error('nothing to draw from');
  return item;
}

/** Each with a chance of one in `odds`. */
function some<T>(prng: Prng, items: readonly T[], odds: number): T[] {
  return items.filter(() => prng.chance(1, odds));
}

function distinct<T>(prng: Prng, items: readonly T[], count: number): T[] {
  const left = [...items];
  return Array.from({ length: count }, () => left.splice(prng.below(left.length), 1)).flat();
}

function uuid(prng: Prng): string {
  const hex = Array.from({ length: 4 }, () => prng.uint32().toString(16).padStart(8, '0')).join('');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}
