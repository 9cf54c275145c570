// A server is killed between any two steps of a spare, and another one goes on: what is made is made once, and undone once.

import { afterEach, describe, expect, it } from 'vitest';
import type { Spare, SparePhase } from '../../api/resources/spare.ts';
import { startTestServer, testRegistration, testStore } from '../testing.ts';
import type { Probe, Provisioner } from './provisioner.ts';

type Server = Awaited<ReturnType<typeof startTestServer>>;

const points = [
  'before it is made',
  'after it is made',
  'before it is asked',
  'after it has answered',
  'before it is undone',
  'after it is undone',
] as const;
type Point = (typeof points)[number];

/** What is outside of the servers: it outlives them. At `crashAt` the first server that comes by stops for ever. */
class Outside {
  readonly #crashAt: Point | undefined;
  readonly #isSearchable: boolean;
  readonly #arrived = Promise.withResolvers<void>();
  #crashed = false;
  readonly made: string[] = [];
  readonly undone: string[] = [];
  readonly resumed: boolean[] = [];
  readonly #present = new Set<string>();

  constructor({ crashAt, isSearchable = true }: { crashAt?: Point; isSearchable?: boolean }) {
    this.#crashAt = crashAt;
    this.#isSearchable = isSearchable;
  }

  get arrived(): Promise<void> {
    return this.#arrived.promise;
  }

  get means() {
    const metal: Provisioner = {
      provision: async ({ id }, { resumed }) => {
        this.resumed.push(resumed);
        if (resumed && !this.#isSearchable) return { is: 'unknown', why: 'the service has no search' };
        await this.#passes('before it is made');
        if (!this.#present.has(id)) this.made.push(id);
        this.#present.add(id);
        await this.#passes('after it is made');
        return { is: 'done', address: '10.0.0.9' };
      },
      release: async ({ id }) => {
        await this.#passes('before it is undone');
        if (this.#present.delete(id)) this.undone.push(id);
        await this.#passes('after it is undone');
        return { is: 'done' };
      },
    };
    const probe: Probe = async () => {
      await this.#passes('before it is asked');
      await this.#passes('after it has answered');
      return { ready: true, message: 'it answers' };
    };
    return { provisioners: new Map([['metal', metal]]), probe };
  }

  async #passes(point: Point): Promise<void> {
    if (point !== this.#crashAt || this.#crashed) return;
    this.#crashed = true;
    this.#arrived.resolve();
    await new Promise(() => {}); // what the killed server would have done next
  }
}

let server: Server;
afterEach(() => server.close());

async function fleetOf(outside: Pick<Outside, 'means'>) {
  const store = testStore();
  server = await startTestServer({ store, spares: outside.means });
  await server.client.create('host', { metadata: { name: 'h1' }, spec: {} });
  await server.agentClient('h1').register(testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 8192 } }));
  const crash = async (): Promise<void> => {
    await server.drop();
    server = await startTestServer({ store, spares: outside.means });
  };
  return { crash, store };
}

const ready = { tcp: { port: 22 }, timeoutMs: 60_000, periodMs: 1_000 };
const prepare = (): Promise<Spare> =>
  server.client.create('spare', {
    metadata: { name: 'a' },
    spec: { cpus: 2, memoryMiB: 64, provisioner: 'metal', ttlMs: 600_000, ready },
  });
const phase = async (): Promise<SparePhase> => (await server.client.get('spare', 'a')).status.phase;
const taken = () => server.client.list('task').then(({ items }) => items.map(({ status }) => status.phase));

describe('a server is killed', () => {
  it.each(points)('%s', async (crashAt) => {
    const outside = new Outside({ crashAt });
    const { crash } = await fleetOf(outside);
    const { id } = (await prepare()).metadata;
    const isUndoing = crashAt.endsWith('undone');
    if (!isUndoing) {
      await outside.arrived;
      await crash();
    }
    await expect.poll(phase).toBe('Ready');
    expect(await server.client.get('spare', 'a')).toMatchObject({ status: { host: 'h1', address: '10.0.0.9' } });
    expect([outside.made, outside.undone, await taken()]).toEqual([[id], [], ['Placed']]);
    await server.client.delete('spare', 'a');
    if (isUndoing) {
      await outside.arrived;
      expect(await taken()).toEqual(['Placed']);
      await crash();
    }
    await expect.poll(phase).toBe('Released');
    expect([outside.made, outside.undone, await taken()]).toEqual([[id], [id], ['Expired']]);
  });

  it('while it is ready: nothing is asked again', async () => {
    const outside = new Outside({});
    const { crash } = await fleetOf(outside);
    await prepare();
    await expect.poll(phase).toBe('Ready');
    const { heldUntilMs } = (await server.client.get('spare', 'a')).status;
    await crash();
    expect(await server.client.get('spare', 'a')).toMatchObject({ status: { phase: 'Ready', heldUntilMs } });
    expect([outside.made.length, outside.resumed]).toEqual([1, [false]]);
  });

  it('never begins what the one that leads begins', async () => {
    const outside = new Outside({});
    const { store } = await fleetOf(outside);
    const other = await startTestServer({ store, spares: outside.means }); // takes the lead over; the first one learns of it
    await prepare();
    await expect.poll(phase).toBe('Ready');
    expect([outside.made.length, outside.resumed]).toEqual([1, [false]]);
    await other.close();
  });

  it.each(['before it is made', 'after it is made'] as const)(
    '%s, where no one can search: a person decides',
    async (crashAt) => {
      const outside = new Outside({ crashAt, isSearchable: false });
      const { crash } = await fleetOf(outside);
      await prepare();
      await outside.arrived;
      await crash();
      await expect.poll(phase).toBe('Unknown');
      expect([outside.resumed, await taken()]).toEqual([[false, true], ['Placed']]);
      await server.client.delete('spare', 'a');
      await expect.poll(phase).toBe('Released');
      expect([outside.made, await taken()]).toEqual([outside.undone, ['Expired']]);
    },
  );
});

it('is undone after the call that makes it has come to its end', async () => {
  const [called, answers] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const order: string[] = [];
  const metal: Provisioner = {
    provision: async () => {
      called.resolve();
      await answers.promise;
      order.push('made');
      return { is: 'done' };
    },
    release: () => {
      order.push('undone');
      return Promise.resolve({ is: 'done' });
    },
  };
  const { probe } = new Outside({}).means;
  await fleetOf({ means: { provisioners: new Map([['metal', metal]]), probe } });
  await prepare();
  await called.promise;
  await server.client.delete('spare', 'a');
  expect(await phase()).toBe('Releasing');
  answers.resolve();
  await expect.poll(phase).toBe('Released');
  expect(order).toEqual(['made', 'undone']);
});
