// The rogue client: it has a valid token and sends what must be refused. Each request is to be answered 4xx and to change nothing; where
// a request could be taken by mistake, what it would make or change bears the label `rogue`, which a checker looks for.

import type { Prng } from '../../base/prng.ts';
import type { FetchLike } from '../../api/client/client.ts';
import type { CommittedState } from '../history.ts';
import type { Tally } from '../batch/tally.ts';

export const rogueLabel = 'rogue';

export interface RogueRequest {
  readonly what: string;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RogueOptions {
  readonly send: FetchLike;
  readonly state: CommittedState;
  readonly prng: Prng;
  readonly tally: Tally;
  readonly onViolation: (invariant: number, message: string) => void;
}

export function createRogueClient(options: RogueOptions) {
  const { state, prng } = options;
  return {
    /** One request. Answers whether it was refused; else it was lost, or refused for now only. */
    async strike(): Promise<boolean> {
      const request = pick(prng, [...refusedRequests, ...refusedOf(state, prng)]);
      return expectRefusal(options, request);
    },
  };
}

/** Whatever the network does to it: if there is an answer, it is a refusal. Answers whether it was. */
export async function expectRefusal(
  { send, tally, onViolation }: Pick<RogueOptions, 'send' | 'tally' | 'onViolation'>,
  { what, method, path, body, headers = {} }: RogueRequest,
): Promise<boolean> {
  let status: number;
  try {
    const init = { method, headers: { ...headers }, ...(body === undefined ? {} : { body }) };
    ({ status } = await send(`http://berth${path}`, init));
  } catch {
    return false; // lost on the way
  }
  if (status === 503) return false; // refused for now, whatever it was
  if (status < 400 || status > 499) onViolation(0, `${what} was answered ${status}: ${method} ${path} ${body ?? ''}`);
  else tally.hit('rogue-refused');
  return true;
}

const labels = { [rogueLabel]: 'yes' };
const instance = (spec: unknown, metadata: object = {}): string =>
  JSON.stringify({ metadata: { name: 'rogue-1', labels, ...metadata }, spec });
const create = (what: string, body: string, headers?: RogueRequest['headers']): RogueRequest => ({
  what,
  method: 'POST',
  path: '/v1/instances',
  body,
  ...(headers ? { headers } : {}),
});
const read = (what: string, path: string): RogueRequest => ({ what, method: 'GET', path });
const strangerId = `inst_${'7'.repeat(26)}`;
const usual = { image: 'tiny', cpus: 1, memoryMiB: 256 };

const refusedRequests: readonly RogueRequest[] = [
  create('half a body', '{"metadata":{"name":"rogue-1"'),
  create('a body that is no object', '[1,2,3]'),
  create('a body of numbers', '12345678901234567890'),
  create(
    'a field given twice',
    '{"metadata":{"name":"rogue-1"},"metadata":{"name":"rogue-2"},"spec":{"image":"tiny"}}',
  ),
  create('a field that reaches a prototype', '{"metadata":{"name":"rogue-1"},"spec":{"__proto__":{"image":"tiny"}}}'),
  create('a body nested without end', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`),
  create('an unknown field', instance({ ...usual, colour: 'red' })),
  create(
    'an unknown field beside the spec',
    JSON.stringify({ metadata: { name: 'rogue-1', labels }, spec: usual, x: 1 }),
  ),
  create('a huge number', instance({ ...usual, cpus: 1e300 })),
  create('a number beyond counting', instance({ ...usual, memoryMiB: 2 ** 53 })),
  create('no CPU', instance({ ...usual, cpus: 0 })),
  create('less than nothing', instance({ ...usual, diskGiB: -1 })),
  create('half a CPU', instance({ ...usual, cpus: 0.5 })),
  create('a number in quotes', instance({ ...usual, cpus: '1' })),
  create('no image', instance({ cpus: 1 })),
  create('a word that is not one of them', instance({ ...usual, powerState: 'rogue' })),
  create('a name that climbs', instance(usual, { name: '../../etc' })),
  create('a name without end', instance(usual, { name: 'r'.repeat(5000) })),
  create('a label without end', instance(usual, { labels: { ...labels, x: 'y'.repeat(500) } })),
  create('an id of its own', instance(usual, { id: strangerId })),
  create('a key that is none', instance(usual), { 'idempotency-key': 'white space' }),
  create('a gang of one and a half', instance({ ...usual, gang: { name: 'rogue', size: 1.5 } })),
  create('a port beyond the last', instance({ ...usual, ports: [{ guestPort: 70_000 }] })),
  read('an instance that is not there', `/v1/instances/${strangerId}`),
  read('an explanation of nothing', `/v1/instances/${strangerId}/explain`),
  read('half an escape', '/v1/instances/%E0%A4%A'),
  read('a name of zeros', '/v1/instances/%00%00'),
  read('a limit of nothing', '/v1/instances?limit=0'),
  read('a limit that is no number', '/v1/instances?limit=1e9'),
  read('a limit given twice', '/v1/instances?limit=1&limit=2'),
  read('an unknown parameter', '/v1/instances?colour=red'),
  read('a page that is none', '/v1/instances?continue=%25%25%25'),
  read('a selector that is none', '/v1/instances?selector=((('),
  read('a watch of the future', '/v1/instances?watch=true&revision=9007199254740991'),
  read('a watch from before', '/v1/instances?watch=true&revision=-1'),
  read('a route that is none', '/v1/rogues'),
  { what: 'a deletion of nothing', method: 'DELETE', path: `/v1/instances/${strangerId}` },
  { what: 'a method that is none', method: 'PATCH', path: '/v1/instances' },
  { what: 'a replacement of nothing', method: 'PUT', path: '/v1/instances/rogue-9', body: instance(usual) },
  { what: 'a host that is none', method: 'DELETE', path: '/v1/hosts/rogue-host' },
  {
    what: 'an image from nowhere',
    method: 'POST',
    path: '/v1/images',
    body: JSON.stringify({
      metadata: { name: 'rogue', labels },
      spec: { source: 'javascript:alert(1)', format: 'exe' },
    }),
  },
];

/** What must be refused because of what is there. */
function refusedOf(state: CommittedState, prng: Prng): RogueRequest[] {
  const found: RogueRequest[] = [];
  const instances = [...state.list('instance')].filter(({ metadata }) => metadata.generation > 0);
  const one = instances[prng.below(Math.max(1, instances.length))];
  if (one) {
    const { name, project } = one.metadata;
    const path = `/v1/instances/${name}?project=${project}`;
    const replace = (what: string, metadata: object, spec: object = {}): RogueRequest => ({
      what,
      method: 'PUT',
      path,
      body: JSON.stringify({ metadata: { labels, ...metadata }, spec: { ...one.spec, ...spec } }),
    });
    found.push(
      replace('a change of the first revision', { revision: 1 }),
      replace('a change of a revision to come', { revision: Number.MAX_SAFE_INTEGER }),
      replace('a change of an id', { id: strangerId }),
      replace('a change to more CPUs than there are', {}, { cpus: Number.MAX_SAFE_INTEGER }),
      { what: 'a deletion of the first revision', method: 'DELETE', path: `${path}&ifRevision=1` },
      { what: 'a deletion by half', method: 'DELETE', path: `${path}&force=maybe` },
      { what: 'a foreign project', method: 'DELETE', path: `/v1/instances/${name}?project=rogue` },
    );
  }
  const used = [...state.entries()].flatMap(({ key, value }) =>
    value.kind === 'idempotency' && key.startsWith('idempotency/default/') && value.resourceKey.startsWith('instances/')
      ? [key.slice('idempotency/default/'.length)]
      : [],
  );
  const key = used[prng.below(Math.max(1, used.length))];
  if (key !== undefined)
    found.push(create('a key used again for another body', instance(usual), { 'idempotency-key': key }));
  return found;
}

function pick<T>(prng: Prng, [first, ...rest]: readonly T[]): T {
  const found = prng.below(rest.length + 1) === 0 ? first : rest[prng.below(Math.max(1, rest.length))];
  if (found === undefined) throw new Error('there is nothing to pick from');
  return found;
}
