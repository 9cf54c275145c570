import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemFetch } from '../../../base/system.ts';
import type { InstanceBatchItem } from '../../../api/instance-batch.ts';
import { startTestServer, testRegistration } from '../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
});
afterAll(() => server.close());

const named = (name: string, spec: object = {}) => ({ metadata: { name }, spec: { image: 'tiny', ...spec } });
const nameOrCode = (item: InstanceBatchItem): string =>
  'instance' in item ? item.instance.metadata.name : item.error.code;

async function post(
  body: unknown,
  more: Readonly<Record<string, string>> = {},
): Promise<{ status: number; json: unknown }> {
  const response = await systemFetch(`${server.url}/v1/instances/batch`, {
    method: 'POST',
    headers: { authorization: 'Bearer operator', 'content-type': 'application/json', ...more },
    body: JSON.stringify(body),
  });
  return { status: response.status, json: await response.json() };
}

describe('a batch of creates', () => {
  it('names the trace of the request in the error of an item', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const refused = { items: [named('traced', { cpus: 0 })] };
    const { json } = await post(refused, { traceparent: `00-${traceId}-00f067aa0ba902b7-01` });
    expect(json).toMatchObject({ items: [{ error: { traceId } }] });
    const ofOwn = { items: [{ error: { traceId: expect.stringMatching(/^[0-9a-f]{32}$/) } }] };
    expect((await post(refused)).json).toMatchObject(ofOwn);
  });

  it('answers each item in its place: made, or why not, with a field that names the item', async () => {
    const { status, json } = await post({
      items: [
        named('a'),
        named('b', { cpus: 0 }),
        named('a'),
        { spec: { image: 'tinny' } },
        { metadata: { nam: 'x' }, spec: { image: 'tiny' } },
        7,
        named('c', { cpus: 2 }),
      ],
    });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      items: [
        { instance: { metadata: { name: 'a' } } },
        { error: { code: 'InvalidRequest', field: 'items[1].spec.cpus' } },
        { error: { code: 'AlreadyExists', field: 'items[2].metadata.name' } },
        { error: { code: 'InvalidRequest', field: 'items[3].spec.image' } },
        { error: { code: 'InvalidRequest', field: 'items[4].metadata.nam' } },
        { error: { code: 'InvalidRequest', field: 'items[5]' } },
        { instance: { metadata: { name: 'c' }, spec: { cpus: 2 } } },
      ],
    });
  });

  it('is readable as it was answered', async () => {
    const [made] = (await server.client.createInstances([named('read-back')])).items;
    const read = await server.client.get('instance', 'read-back');
    if (made && 'instance' in made && made.instance.metadata.revision === read.metadata.revision)
      expect(made.instance).toEqual(read);
  });

  it('makes nothing twice when it is repeated with its key, and tells a changed item', async () => {
    const items = [named('k0'), { spec: { image: 'tiny' } }, named('k2')];
    const first = await server.client.createInstances(items, { idempotencyKey: 'batch' });
    const again = await server.client.createInstances([...items.slice(0, 2), named('k3')], { idempotencyKey: 'batch' });
    expect(again.items.slice(0, 2).map(nameOrCode)).toEqual(first.items.slice(0, 2).map(nameOrCode));
    expect(again.items[2]).toMatchObject({ error: { code: 'IdempotencyMismatch', field: 'Idempotency-Key' } });
  });

  it('takes a thousand, and names the fault of a batch that is none', async () => {
    const many = await server.client.createInstances(Array.from({ length: 1_000 }, (_, i) => named(`many-${i}`)));
    expect(many.items.map(nameOrCode)).toEqual(Array.from({ length: 1_000 }, (_, i) => `many-${i}`));
    expect((await post({ items: [] })).json).toMatchObject({ error: { code: 'InvalidRequest', field: 'items' } });
    expect((await post({ items: Array.from({ length: 1_001 }, () => named('x')) })).status).toBe(400);
    expect((await post({ item: [] })).json).toMatchObject({ error: { field: 'item' } });
    expect((await post([named('x')])).status).toBe(400);
  });

  it('takes more than a single create does, and says how much', async () => {
    const userData = 'x'.repeat(60_000);
    const large = Array.from({ length: 100 }, (_, i) => named(`large-${i}`, { userData }));
    expect((await server.client.createInstances(large)).items.map(nameOrCode)).not.toContain('PayloadTooLarge');
    const { status, json } = await post({ items: [...large, ...large] });
    expect(status).toBe(413);
    expect(json).toMatchObject({ error: { code: 'PayloadTooLarge', message: expect.stringMatching(/8388608 bytes/) } });
  });
});

describe('a batch on a fleet with little room', () => {
  let small: Awaited<ReturnType<typeof startTestServer>>;
  beforeEach(async () => {
    small = await startTestServer();
    await small.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny' } });
    await small.agentClient('h1').register(testRegistration({ capacity: { VCPU: 2, MEMORY_MB: 8192, DISK_GB: 100 } }));
  });
  afterEach(() => small.close());

  /** Its host, or why it waits. */
  const settled = async (name: string) => {
    for (;;) {
      const { items, revision } = await small.client.list('instance');
      const status = items.find(({ metadata }) => metadata.name === name)?.status;
      const told = status?.conditions.find(({ type }) => type === 'Scheduled')?.reason;
      if (status && told !== 'Accepted') return status.host ?? told;
      for await (const change of small.client.watch('instance', { revision }, AbortSignal.timeout(10_000)))
        if (change.type === 'put') break;
    }
  };

  it('gives the room to the highest priority, whatever stands first', async () => {
    await small.client.createInstances([
      named('low', { cpus: 2, memoryMiB: 512 }),
      named('high', { cpus: 2, memoryMiB: 512, priority: 9 }),
    ]);
    expect([await settled('high'), await settled('low')]).toEqual(['h1', 'Unschedulable']);
  });

  it('fills it in the order of its items, each with its place at once', async () => {
    const { items } = await small.client.createInstances(
      ['a', 'b', 'c'].map((name) => named(name, { cpus: 1, memoryMiB: 512 })),
    );
    const places = items.map((item) => ('instance' in item ? item.instance.status.host : item.error.code));
    expect(places).toEqual(['h1', 'h1', undefined]);
    expect(await settled('c')).toBe('Unschedulable');
  });
});
