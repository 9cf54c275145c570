// Which instances return to a host, in which way, and what the command says when some do not.

import { describe, expect, it } from 'vitest';
import { type Handler, runBerth, testHost, testInstance } from '../../testing.ts';

const guest = (name: string, change: object = {}) => ({
  ...{ kind: 'instance', id: `inst_${name}`, project: 'default', name, generation: 1, incarnation: 1 },
  ...{ action: 'move', reasons: [], amounts: {}, progress: 'done', ...change },
});

const live = { reasons: [{ code: 'Live', message: 'it keeps running' }] };
const guests = [
  guest('db', live),
  guest('ci'),
  guest('full'),
  guest('back'),
  guest('gone'),
  guest('copy', { action: 'replace' }),
  guest('stuck', { progress: 'failed' }),
];

interface Fleet {
  readonly phase?: string;
  readonly host?: object;
  /** The live move has this in its way. */
  readonly obstacles?: readonly object[];
}

function fleet({ phase = 'Cancelled', host = testHost('h1'), obstacles = [] }: Fleet = {}): Handler {
  const moved = new Set<string>(['back']);
  return ({ method, path, body }) => {
    if (path === '/v1/hosts/h1/drain') return { json: { verb: 'drain', host: 'h1', phase, guests } };
    if (path === '/v1/hosts/h1') return { json: host };
    const [, name = '', more] = /^\/v1\/instances\/(\w+)(\/migration)?$/.exec(path) ?? [];
    if (name === 'gone') return { status: 404, json: { error: { code: 'NotFound', message: 'there is none' } } };
    const asked = (body ?? {}) as { apply?: string; live?: boolean };
    const migration = {
      id: 'mig_1',
      step: 'Done',
      from: 'h2',
      to: 'h1',
      fromIncarnation: 1,
      incarnation: 2,
      startedAtMs: 0,
    };
    if (more !== undefined && method === 'POST' && asked.apply !== undefined) {
      moved.add(name);
      return { json: { migration } };
    }
    const cold = {
      instance: name,
      instanceId: `inst_${name}`,
      project: 'default',
      from: 'h2',
      to: 'h1',
      options: {},
      copies: [],
    };
    if (more !== undefined) {
      const full = [{ code: 'NoHost', message: 'host h1 does not take it: InsufficientCpu' }];
      const inTheWay = name === 'full' ? full : asked.live ? obstacles : [];
      const kind = asked.live ? 'live' : 'cold';
      return { json: { plan: { ...cold, kind, hash: `${name}-${kind}`, obstacles: inTheWay } } };
    }
    const instance = testInstance(name);
    const at = moved.has(name) ? { host: 'h1', migration } : { host: 'h2' };
    const found = {
      ...instance,
      metadata: { ...instance.metadata, id: `inst_${name}` },
      status: { phase: 'Running', conditions: [], ...at },
    };
    return path === '/v1/instances' ? { json: { items: [found], revision: 1 } } : { json: found };
  };
}

describe('berth host restore', () => {
  it('shows what returns and how, and what stays', async () => {
    const { stdout } = await runBerth(['host', 'restore', 'h1'], { handler: fleet() });
    const lines = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
    expect(lines.slice(2, 6)).toEqual([
      ['NAME', 'FROM', 'ACTION', 'WHY'],
      ['db', 'h2', 'moves live', '-'],
      ['ci', 'h2', 'moves cold', '-'],
      ['full', 'h2', 'stays', 'host h1 does not take it: InsufficientCpu'],
    ]);
    expect(stdout).toMatch(/Apply it with:\n {2}berth host restore h1 --apply [0-9a-f]{16}\n/);
  });

  it('moves cold what cannot move live', async () => {
    const obstacles = [{ code: 'CpuDiffers', message: 'its CPU model differs' }];
    const { stdout } = await runBerth(['host', 'restore', 'h1', '-o', 'json'], { handler: fleet({ obstacles }) });
    expect(JSON.parse(stdout)).toMatchObject({ instances: [{ name: 'db', action: 'moves cold' }, {}, {}] });
  });

  it.each([
    ['a plan that has changed', ['--apply', '0123456789abcdef'], {}, 'the plan has changed'],
    ['a drain that goes on', [], { phase: 'Draining' }, 'berth host drain h1 --cancel'],
    ['both flags', ['--apply', 'x', '--yes'], {}, 'give only one of --apply and --yes'],
  ])('refuses %s', async (_, words, scene, said) => {
    const { stderr, exitCode, requests } = await runBerth(['host', 'restore', 'h1', ...words], {
      handler: fleet(scene),
    });
    expect(stderr).toContain(said);
    expect(exitCode).not.toBe(0);
    expect(JSON.stringify(requests)).not.toContain('-cold"}');
  });
});
