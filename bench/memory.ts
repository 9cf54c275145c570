// Suite `memory`: whether the control plane's memory has a bound. 60,000 creates, each with an idempotency key, of which the newest thousand live
// on: what grows is what is remembered of those that are gone. Events reach their limit (eventsMax) after some 17,000 creates;
// idempotency keys (idempotencyMax) would after a million, at some 400 bytes each.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { residentMb } from './process-memory.ts';
import { connectRaw, encodeRequest, type RawConnection } from './raw-http.ts';
import { type Emit, median } from './row.ts';
import { buildProduct, type ServerProcess, startServerProcess } from './server-process.ts';

const suite = 'memory';
const creates = 60_000;
const atOnce = 200;
const liveMax = 1_000;
/** The median over this many creates counts: a collection of garbage moves a single sample by a tenth. */
const windowCreates = 5_000;

/** Takes two minutes. */
export async function run(emit: Emit): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-bench-memory-'));
  try {
    buildProduct();
    const server = await startServerProcess(join(directory, 'server'));
    try {
      await new Promise((resolve) => setTimeout(resolve, 2_000)); // let it come to rest
      const limit = await residentMb(server.pid);
      const samples = await churn(server);
      const around = (count: number): number =>
        median(samples.filter(({ made }) => made > count - windowCreates && made <= count).map(({ rssMb }) => rssMb));
      const [half, value] = [around(creates / 2), around(creates)];
      // Limit: what the same process held before the first of them.
      emit({
        suite,
        name: 'rss_after_60k_creates_mb',
        value,
        unit: 'MiB',
        better: 'lower',
        goal: 480,
        limit,
        ratio: value / limit,
      });
      const growth = (100 * (value - half)) / half;
      emit({ suite, name: 'rss_growth_in_last_30k_creates', value: growth, unit: '%', better: 'lower', goal: 20 });
    } finally {
      await server.close();
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** As fast as it goes; answers what the server held after how many creates. */
async function churn(server: ServerProcess): Promise<{ readonly made: number; readonly rssMb: number }[]> {
  const target = { url: server.url, token: server.operatorToken };
  const open = await Promise.all(Array.from({ length: 16 }, () => connectRaw(server.url)));
  const ask = (request: Buffer, at: number): Promise<void> => answered(open[at % open.length], request);
  const image = { source: 'file:///nowhere', defaults: { cpus: 1, memoryMiB: 512 } };
  await ask(encodeRequest(target, 'POST', '/v1/images', { metadata: { name: 'bench' }, spec: image }), 0);
  const samples: { made: number; rssMb: number }[] = [];
  for (let made = 0; made < creates; made += atOnce) {
    const numbers = Array.from({ length: atOnce }, (_, i) => made + i);
    await Promise.all(
      numbers.map((i) => {
        const body = { metadata: { name: `memory-${i}` }, spec: { image: 'bench' } };
        return ask(withKey(encodeRequest(target, 'POST', '/v1/instances', body), `key-${i}`), i);
      }),
    );
    const old = numbers.map((i) => i - liveMax).filter((i) => i >= 0);
    await Promise.all(old.map((i) => ask(encodeRequest(target, 'DELETE', `/v1/instances/memory-${i}`, {}), i)));
    samples.push({ made: made + atOnce, rssMb: await residentMb(server.pid) });
  }
  for (const connection of open) connection.close();
  return samples;
}

function withKey(request: Buffer, key: string): Buffer {
  return Buffer.from(request.toString().replace('\r\n', `\r\nidempotency-key: ${key}\r\n`));
}

function answered(connection: RawConnection | undefined, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    connection?.send(request, ({ status, body }) => {
      if (status < 300) resolve();
      else reject(new Error(`the server answered ${status}: ${body.toString().slice(0, 300)}`));
    });
  });
}
