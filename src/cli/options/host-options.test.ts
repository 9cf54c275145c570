import { describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testHost, testInstance } from '../testing.ts';

const create: Handler = ({ method, path }) =>
  method === 'POST' && path === '/v1/instances' ? { status: 201, json: testInstance('web') } : undefined;

async function specOf(...flags: string[]): Promise<unknown> {
  const { requests, stderr } = await runBerth(['run', 'tiny', ...flags], { handler: create });
  expect(stderr).toBe('');
  const body = requests[0]?.body;
  return typeof body === 'object' && body !== null ? Reflect.get(body, 'spec') : undefined;
}

describe('berth run asks of hosts', () => {
  const rows: [string, string[], object][] = [
    [
      'labels',
      [
        '--host-rule',
        'zone=a,b',
        '--host-rule',
        'zone!=c',
        '--host-rule',
        'gpu',
        '--host-rule',
        '!old',
        '--host-rule',
        'cores>8',
      ],
      {
        placement: {
          hostRules: [
            { key: 'zone', operator: 'In', values: ['a', 'b'] },
            { key: 'zone', operator: 'NotIn', values: ['c'] },
            { key: 'gpu', operator: 'Exists' },
            { key: 'old', operator: 'DoesNotExist' },
            { key: 'cores', operator: 'Gt', values: ['8'] },
          ],
        },
      },
    ],
    [
      'traits',
      ['--trait', 'HW_A', '--trait', '!CUSTOM_B', '--trait', 'CUSTOM_C,CUSTOM_D'],
      { placement: { traits: { required: ['HW_A'], forbidden: ['CUSTOM_B'], anyOf: [['CUSTOM_C', 'CUSTOM_D']] } } },
    ],
    [
      'preferences',
      ['--prefer', '50:zone=a', '--prefer', '-20:trait=CUSTOM_SLOW'],
      {
        placement: {
          preferences: [
            { weight: 50, key: 'zone', operator: 'In', values: ['a'] },
            { weight: -20, trait: 'CUSTOM_SLOW' },
          ],
        },
      },
    ],
    [
      'tolerations',
      ['--tolerate', 'reserved=ci:NoSchedule', '--tolerate', 'old', '--tolerate', '*'],
      { placement: { tolerations: [{ key: 'reserved', value: 'ci', effect: 'NoSchedule' }, { key: 'old' }, {}] } },
    ],
    ['dedication', ['--dedicated'], { placement: { dedicated: true } }],
    [
      'a profile with other weights',
      ['--profile', 'best-fit', '--weight', 'guest-count=0'],
      { placement: { profile: 'best-fit', weights: { 'guest-count': 0 } } },
    ],
    ['a query', ['--query', 'resources=VCPU:1'], { placement: { query: 'resources=VCPU:1' } }],
    ['GPUs', ['--gpus', '2', '--gpu-model', 'A100'], { gpus: { count: 2, models: ['A100'] } }],
    ['a share of a GPU', ['--gpu-share', '0.25'], { gpus: { count: 1, share: 250 } }],
    ['cells', ['--numa-cells', '2'], { numaCells: 2 }],
  ];
  for (const [name, flags, expected] of rows)
    it(name, async () => expect(await specOf(...flags)).toMatchObject(expected));

  it.each([
    ['--host-rule', 'zone~a', 'KEY=A,B, KEY!=A'],
    ['--host-rule', '!zone=a', 'KEY=A,B, KEY!=A'],
    ['--prefer', 'zone=a', 'WEIGHT:RULE'],
    ['--prefer', '0:zone=a', 'WEIGHT:RULE'],
    ['--prefer', '101:zone=a', 'WEIGHT:RULE'],
    ['--tolerate', '=x', 'KEY[=VALUE][:EFFECT]'],
    ['--tolerate', 'a:NoExecute', 'choose one of: NoSchedule, PreferNoSchedule'],
    ['--weight', 'utilization=-1', 'whole number'],
    ['--gpu-share', '1.5', 'a fraction'],
    ['--gpu-share', '0', 'a fraction'],
    ['--numa-cells', '0', 'whole number'],
    ['--profile', 'worst-fit', 'best-fit'],
  ])('%s %s is refused before the server is asked', async (flag, value, advice) => {
    const { exitCode, stderr, requests } = await runBerth(['run', 'tiny', flag, value], { handler: create });
    expect(stderr).toContain(advice);
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  });
});

describe('berth host', () => {
  const changed = async (spec: object, ...words: string[]): Promise<{ spec: unknown; stdout: string }> => {
    let put: unknown;
    const handler: Handler = ({ method, body }) => {
      if (method === 'GET') return { json: testHost('h1', { spec }) };
      put = typeof body === 'object' && body !== null ? Reflect.get(body, 'spec') : undefined;
      return { json: testHost('h1', { spec: put as object }) };
    };
    const { stdout, stderr } = await runBerth(['host', ...words], { handler });
    expect(stderr).toBe('');
    return { spec: put, stdout };
  };
  const ci = { key: 'reserved', value: 'ci', effect: 'NoSchedule' };

  it('taint adds taints, the new value in place of the old', async () => {
    const { spec, stdout } = await changed({ taints: [ci] }, 'taint', 'h1', 'reserved=db', 'old:PreferNoSchedule');
    expect(spec).toMatchObject({
      taints: [
        { key: 'reserved', value: 'db', effect: 'NoSchedule' },
        { key: 'old', effect: 'PreferNoSchedule' },
      ],
    });
    expect(stdout).toBe('h1 has the taints reserved=db:NoSchedule, old:PreferNoSchedule\n');
  });
  it('untaint takes them off, by key or all', async () => {
    const old = { key: 'old', effect: 'PreferNoSchedule' };
    expect((await changed({ taints: [ci, old] }, 'untaint', 'h1', 'reserved')).spec).toMatchObject({ taints: [old] });
    const { spec, stdout } = await changed({ taints: [ci, old] }, 'untaint', 'h1');
    expect(spec).not.toHaveProperty('taints');
    expect(stdout).toBe('h1 has no taints\n');
  });
  it('untaint refuses a taint that is not there', async () => {
    const handler: Handler = () => ({ json: testHost('h1', { spec: { taints: [ci] } }) });
    const { stderr, exitCode } = await runBerth(['host', 'untaint', 'h1', 'nope'], { handler });
    expect(exitCode).toBe(3);
    expect(stderr).toContain('it has: reserved=ci:NoSchedule');
  });
  it('pool refuses one that nobody made and no host is in', async () => {
    const handler: Handler = ({ path }) =>
      path === '/v1/pools'
        ? page([])
        : path === '/v1/hosts'
          ? page([testHost('h2', { spec: { pool: 'builders' } })])
          : undefined;
    const told = async (pool: string) => (await runBerth(['host', 'pool', 'h1', pool], { handler })).stderr;
    expect(await told('bilders')).toContain('did you mean "builders"?');
    expect(await told('nope')).toContain('create it first: berth pool create nope');
  });
  it('set gives labels and takes them away', async () => {
    const host = testHost('h1') as { metadata: object };
    const labels = { zone: 'a', rack: 'r1', old: 'x' };
    const { requests } = await runBerth(
      ['host', 'set', 'h1', '--label', 'zone=b', '--label', 'old=', '--label', 'gpu=a100'],
      {
        handler: () => ({ json: { ...host, metadata: { ...host.metadata, labels } } }),
      },
    );
    expect(requests.at(-1)?.body).toMatchObject({ metadata: { labels: { zone: 'b', rack: 'r1', gpu: 'a100' } } });
    expect(requests.at(-1)?.body).not.toHaveProperty('metadata.labels.old');
  });
  it('set says what it is for, and leaves the rest', async () => {
    const before = { pool: 'ci', traits: ['CUSTOM_A', 'CUSTOM_B'], instancesMax: 3, reserved: { MEMORY_MB: 1 } };
    const flags = ['--dedicated-to', 'ours', '--trait', 'CUSTOM_C', '--trait', '!CUSTOM_A', '--instances-max', '9'];
    const { spec } = await changed(
      before,
      'set',
      'h1',
      ...flags,
      '--reserve',
      'MEMORY_MB=12.5%',
      '--overcommit',
      'VCPU=4',
    );
    expect(spec).toMatchObject({
      pool: 'ci',
      dedicatedTo: 'ours',
      instancesMax: 9,
      traits: ['CUSTOM_B', 'CUSTOM_C'],
      reserved: {},
      inventory: { MEMORY_MB: { reservedPercent: 12.5 } },
      allocationRatios: { VCPU: 4 },
    });
  });
  it('set takes reserves and ratios back by an empty value', async () => {
    const before = {
      reserved: { MEMORY_MB: 1, VCPU: 1 },
      inventory: { MEMORY_MB: { reservedPercent: 5 }, DISK_GB: { reservedPercent: 5, maxUnit: 9 } },
      allocationRatios: { VCPU: 4, MEMORY_MB: 2 },
    };
    const flags = ['--reserve', 'MEMORY_MB=', '--reserve', 'DISK_GB=', '--overcommit', 'VCPU='];
    const { spec } = await changed(before, 'set', 'h1', ...flags);
    expect(spec).toEqual({
      paused: false,
      reserved: { VCPU: 1 },
      inventory: { DISK_GB: { maxUnit: 9 } },
      allocationRatios: { MEMORY_MB: 2 },
    });
  });
  it('set warns when a reserve leaves nothing', async () => {
    const reserved = { MEMORY_MB: 99_999 };
    const { stderr, exitCode } = await runBerth(['host', 'set', 'h1', '--reserve', 'MEMORY_MB=99999'], {
      handler: () => ({ json: testHost('h1', { spec: { reserved } }) }),
    });
    expect(exitCode).toBe(0);
    expect(stderr).toBe(
      'warning: h1 has 16 GiB memory, and 97.7 GiB memory are reserved: nothing is left for instances\n',
    );
  });
  it('show tells what is kept for the host, by share and by its agent', async () => {
    const host = testHost('h1', {
      spec: { reserved: { DISK_GB: 5 }, inventory: { VCPU: { reservedPercent: 20 } } },
    });
    const { stdout } = await runBerth(['host', 'show', 'h1'], {
      handler: ({ path }) => ({ json: path.endsWith('/providers') ? { providers: [], allocations: [] } : host }),
    });
    expect(stdout).toContain('8 CPUs (2 CPUs kept for the host, 20 %)');
    expect(stdout).toContain('16 GiB memory (1 GiB memory kept for the host)');
    expect(stdout).toContain('100 GiB disk (5 GiB disk kept for the host)');
  });
  it('set takes back what it said', async () => {
    const before = { dedicated: true, dedicatedTo: 'ours', instancesMax: 3, controlPlane: true };
    const flags = ['--no-dedicated', '--dedicated-to', '', '--instances-max', 'none', '--no-control-plane'];
    const { spec } = await changed(before, 'set', 'h1', ...flags);
    expect(spec).toMatchObject({ dedicated: false, controlPlane: false });
    expect(spec).not.toHaveProperty('dedicatedTo');
    expect(spec).not.toHaveProperty('instancesMax');
  });
});

it('berth pool set changes what is named, and takes away what is to be none', async () => {
  const before = {
    description: 'for CI',
    profile: 'best-fit',
    weights: { 'guest-count': 3, 'best-fit': 1 },
    allocationRatios: { MEMORY_MB: 1.5 },
    defaults: { cpus: 2, memoryMiB: 1024 },
  };
  const set = async (...flags: string[]) => {
    const pool = { ...testHost('ci'), kind: 'pool', spec: before, status: {} };
    const { requests, stdout } = await runBerth(['pool', 'set', 'ci', ...flags], { handler: () => ({ json: pool }) });
    expect(stdout).toBe('pool ci changed\n');
    const body = requests.at(-1)?.body as { spec: unknown } | undefined;
    return body?.spec;
  };
  expect(await set('--cpu-ratio', '8', '--default-cpus', 'none', '--weight', 'best-fit=')).toEqual({
    ...before,
    weights: { 'guest-count': 3 },
    allocationRatios: { MEMORY_MB: 1.5, VCPU: 8 },
    defaults: { memoryMiB: 1024 },
  });
  expect(await set('--cpu-ratio', 'none', '--profile', 'none')).toEqual({ ...before, profile: undefined });
  const { stderr, exitCode } = await runBerth(['pool', 'set', 'ci', '--cpu-ratio', 'many'], {
    handler: () => ({ json: { ...testHost('ci'), kind: 'pool', spec: before, status: {} } }),
  });
  expect(exitCode).toBe(2);
  expect(stderr).toContain('--cpu-ratio cannot be "many"');
});

it('berth pool create says how its hosts are preferred, and what instances get there', async () => {
  const flags = [
    '--profile',
    'best-fit',
    '--weight',
    'guest-count=3',
    '--default-cpus',
    '2',
    '--default-memory',
    '1GiB',
  ];
  const { requests, stderr } = await runBerth(['pool', 'create', 'ci', ...flags], {
    handler: () => ({ status: 201, json: {} }),
  });
  expect(stderr).toBe('');
  expect(requests[0]?.body).toMatchObject({
    spec: { profile: 'best-fit', weights: { 'guest-count': 3 }, defaults: { cpus: 2, memoryMiB: 1024 } },
  });
});
