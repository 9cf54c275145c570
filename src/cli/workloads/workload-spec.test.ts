import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../testing.ts';

const create: Handler = ({ method, path, body }) =>
  method === 'POST' && path === '/v1/workloads' ? { status: 201, json: body } : undefined;

async function templateOf(...flags: string[]): Promise<unknown> {
  const { requests, stderr } = await runBerth(['workload', 'create', 'shop', 'tiny', '-o', 'name', ...flags], {
    handler: create,
  });
  expect(stderr).toBe('');
  const body = requests[0]?.body as { spec: { template: unknown } } | undefined; // as the command sends it
  return body?.spec.template;
}

const overHosts = (among: object) => [{ by: 'host', maxSkew: 1, required: false, among }];

describe('berth workload create', () => {
  it.each([
    ['nothing is said', [], { workload: 'shop' }, overHosts({ workload: 'shop' })],
    ['they have a label', ['-l', 'app=shop'], { app: 'shop' }, overHosts({ app: 'shop' })],
    ['only hosts are chosen', ['--pool', 'ci'], { workload: 'shop' }, overHosts({ workload: 'shop' })],
  ])('spreads the copies over hosts where %s', async (_, flags, labels, spread) =>
    expect(await templateOf(...flags)).toMatchObject({ labels, spec: { placement: { spread } } }),
  );

  it.each([
    [['--per-host'], undefined],
    [['--group', 'db'], undefined],
    [['--max-per-host', '2', '-l', 'app=shop'], undefined],
    [['--affinity', 'app=db'], undefined],
    [['--spread', 'zone', '-l', 'app=shop'], [{ by: 'zone', maxSkew: 1, required: true }]],
  ])('keeps to %j alone', async (flags, spread) => {
    const template = (await templateOf(...flags)) as { spec: { placement: { spread?: unknown } } }; // as sent by the command
    expect(template.spec.placement.spread).toEqual(spread);
  });
});
