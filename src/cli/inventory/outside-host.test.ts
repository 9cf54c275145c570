import { expect, it } from 'vitest';
import { ApiError } from '../../api/errors.ts';
import { type Handler, runBerth, testNowMs } from '../testing.ts';

const agoMs = (ms: number): number => testNowMs - ms;
const metadata = { project: '', labels: {}, createdAtMs: agoMs(3_600_000) };
const status = { epoch: 0, drivers: [], images: [], unknownGuests: [], conditions: [] };
const outside = { inventory: 'metal', usage: { VCPU: 2, MEMORY_MB: 1024 }, reportedAtMs: agoMs(60_000) };
const hosts = [
  { metadata: { ...metadata, name: 'm1' }, spec: { allocationRatios: {} }, status: { ...status, outside } },
  {
    metadata: { ...metadata, name: 'm2' },
    spec: { allocationRatios: {} },
    status: { ...status, outside: { ...outside, missed: 2 } },
  },
  { metadata: { ...metadata, name: 'own' }, spec: { allocationRatios: {} }, status },
];
const inventory = (state: string) => ({
  ...{ metadata: { ...metadata, name: 'metal' }, spec: { source: { kind: 'push' } } },
  status: { state, message: '', hosts: 2, skipped: [], lastGoodAtMs: agoMs(720_000) },
});
const server =
  (inventories: object | ApiError): Handler =>
  ({ path }) => {
    if (path.startsWith('/v1/inventories'))
      return inventories instanceof ApiError
        ? { status: 403, json: { error: inventories } }
        : { json: { items: [inventories], revision: 1 } };
    if (path.startsWith('/v1/usage')) return { json: { items: [] } };
    if (path.includes('/providers')) return { json: { providers: [], allocations: [] } };
    if (path.startsWith('/v1/hosts/m2')) return { json: hosts[1] };
    return { json: { items: hosts, revision: 1 } };
  };

it.each([
  ['Fresh', inventory('Fresh'), ['metal', 'metal, absent from 2 lists', '-']],
  ['Stale', inventory('Stale'), ['metal, 12m old', 'metal, 12m old, absent from 2 lists', '-']],
  ['hidden from the caller', new ApiError('Forbidden', 'no'), ['metal', 'metal, absent from 2 lists', '-']],
])('the list of hosts shows the age of an inventory that is %s', async (_name, inventories, origins) => {
  const { stdout, exitCode } = await runBerth(['host', 'ls'], { handler: server(inventories) });
  const [header = '', ...rows] = stdout.split('\n');
  const [from, to] = [header.indexOf('INVENTORY'), header.indexOf('AGE')];
  expect(rows.slice(0, 3).map((row) => row.slice(from, to).split(/ {2,}/)[0])).toEqual(origins);
  expect(exitCode).toBe(0);
});

it('a host of an inventory is shown with its usage and age', async () => {
  const { stdout, stderr } = await runBerth(['host', 'show', 'm2'], { handler: server(inventory('Stale')) });
  expect(stderr).toBe('');
  expect(stdout).toContain('metal, 12m old, absent from 2 lists');
  expect(stdout).toContain('2 CPUs, 1 GiB memory, changed 60s ago');
});
