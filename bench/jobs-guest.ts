// What a job costs beyond the boot of its guest, how many lines of its log arrive per second, and how soon: the tiny image under TCG, server and
// agent as processes of the built product, and a client that follows the log.

import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type Fleet, startFleet } from '../test/processes.ts';
import { tinyImage } from '../test/tiny-image.ts';
import { bareBootMs } from './bare-boot.ts';
import { type Emit, median, percentile } from './row.ts';
import { buildProduct, program } from './server-process.ts';

const suite = 'jobs';
const rounds = 5;
const lines = 200_000;
const liveLines = 300;
const livePauseMs = 50;

async function withFleet(
  directory: string,
  agent: Readonly<Record<string, unknown>>,
  use: (fleet: Fleet, image: string) => Promise<void>,
): Promise<void> {
  buildProduct();
  const tiny = await tinyImage();
  const fleet = await startFleet(directory, { drivers: ['qemu'], agent, program });
  try {
    await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
    await use(fleet, tiny.path);
  } finally {
    await fleet.stop();
  }
}

export function measureOverhead(directory: string, emit: Emit): Promise<void> {
  return withFleet(join(directory, 'overhead'), {}, (fleet, image) => overhead(fleet, { image, directory }, emit));
}

export function measureLines(directory: string, emit: Emit): Promise<void> {
  return withFleet(join(directory, 'lines'), {}, (fleet) => throughput(fleet, emit));
}

export async function measureLive(directory: string, emit: Emit): Promise<void> {
  const beats = createServer({ allowHalfOpen: true }); // nc has nothing to say
  beats.listen(0, '127.0.0.1');
  await once(beats, 'listening');
  const { port } = beats.address() as AddressInfo; // it listens on TCP
  const connected = once(beats, 'connection').then(([socket]: Socket[]) => socket);
  try {
    await withFleet(join(directory, 'live'), { hostPortsReached: [port] }, (fleet) =>
      liveness(fleet, { port, connected }, emit),
    );
  } finally {
    beats.close();
  }
}

async function overhead(
  fleet: Fleet,
  { image, directory }: { readonly image: string; readonly directory: string },
  emit: Emit,
): Promise<void> {
  const [times, boots]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    const startedAt = performance.now();
    await createJob(fleet, `true-${round}`, 'true');
    await ended(fleet, `true-${round}`);
    times.push(performance.now() - startedAt);
    boots.push(await bareBootMs(image, directory));
  }
  const limit = median(boots);
  const whole = median(times.slice(1)); // the first one fills the image cache
  process.stderr.write(`  a job takes ${whole.toFixed(0)} ms, a boot ${limit.toFixed(0)} ms\n`);
  emit({
    suite,
    name: 'job_overhead_ms',
    value: whole - limit,
    unit: 'ms',
    better: 'lower',
    goal: 700,
    limit,
    ratio: whole / limit,
  });
}

/** From the first line at the client to the last, each of them checked. */
async function throughput(fleet: Fleet, emit: Emit): Promise<void> {
  await createJob(fleet, 'flood', `seq 1 ${lines}`);
  let expected = 1;
  let firstAt = 0;
  let lastAt = 0;
  for await (const { text } of followed(fleet, 'flood')) {
    if (text !== String(expected)) throw new Error(`line ${expected} is ${JSON.stringify(text)}`);
    if (expected === 1) firstAt = performance.now();
    expected += 1;
    lastAt = performance.now();
  }
  if (expected !== lines + 1) throw new Error(`only ${expected - 1} of ${lines} lines have arrived`);
  await ended(fleet, 'flood');
  const value = ((lines - 1) * 1000) / (lastAt - firstAt);
  emit({ suite, name: 'log_lines_per_s', value, unit: 'lines/s', better: 'higher', goal: 50_000 });
}

/**
 * The guest's clock is not that of this host, so a line goes into the guest over TCP and comes out in its log: an upper bound of
 * what the log takes.
 */
async function liveness(
  fleet: Fleet,
  { port, connected }: { readonly port: number; readonly connected: Promise<Socket | undefined> },
  emit: Emit,
): Promise<void> {
  await createJob(fleet, 'live', `nc 10.0.2.2 ${port} | while read -r line; do echo "$line"; done`);
  const sentAt: number[] = [];
  const [times, toAgent]: [number[], number[]] = [[], []];
  const sending = connected.then(async (socket) => {
    for (let i = 0; i < liveLines; i++) {
      sentAt.push(Date.now());
      socket?.write(`${i}\n`);
      await sleep(livePauseMs);
    }
    socket?.end();
  });
  for await (const { text, agentAtMs } of followed(fleet, 'live')) {
    const sent = sentAt[Number(text)];
    if (sent === undefined) throw new Error(`the guest said ${JSON.stringify(text)}`);
    times.push(Date.now() - sent);
    toAgent.push(agentAtMs - sent);
  }
  await sending;
  if (times.length !== liveLines) throw new Error(`${times.length} of ${liveLines} lines have arrived`);
  await ended(fleet, 'live');
  process.stderr.write(
    `  median ${median(times).toFixed(0)} ms, ${median(toAgent).toFixed(0)} ms of it until the agent has the line\n`,
  );
  emit({
    suite,
    name: 'live_line_p99_ms',
    value: percentile(times, 0.99),
    unit: 'ms',
    better: 'lower',
    goal: 200,
  });
}

const createJob = (fleet: Fleet, name: string, script: string) =>
  fleet.client.create('job', {
    metadata: { name },
    spec: { image: 'tiny', cpus: 1, memoryMiB: 128, script },
  });

async function ended(fleet: Fleet, name: string): Promise<void> {
  const { items, revision } = await fleet.client.list('job');
  let phase = items.find(({ metadata }) => metadata.name === name)?.status.phase;
  const timeout = AbortSignal.timeout(120_000);
  if (phase !== 'Succeeded' && phase !== 'Failed')
    for await (const change of fleet.client.watch('job', { revision }, timeout)) {
      if (change.type !== 'put' || change.resource.metadata.name !== name) continue;
      phase = change.resource.status.phase;
      if (phase === 'Failed') break;
      if (phase === 'Succeeded') return;
    }
  if (phase !== 'Succeeded') throw new Error(`job ${name} is ${phase}`);
}

interface Line {
  readonly text: string;
  /** When the agent received it. */
  readonly agentAtMs: number;
}

/** The text of each line of its log, as they come, until its attempt is over. */
async function* followed(fleet: Fleet, name: string): AsyncGenerator<Line> {
  let rest = '';
  let begun = '';
  let offset = 0;
  for (;;) {
    for await (const bytes of fleet.client.jobLog(name, { follow: true, offset })) {
      offset += bytes.length;
      const parts = (rest + Buffer.from(bytes).toString('latin1')).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) {
        const [, time = '', tag, text = ''] = /^(\S+) \S+ ([FP]) (.*)$/s.exec(line) ?? [];
        begun += text;
        if (tag !== 'F') continue; // a part of a line that goes on
        yield { text: begun, agentAtMs: Date.parse(time) };
        begun = '';
      }
    }
    const { phase } = (await fleet.client.get('job', name)).status;
    if (phase === 'Succeeded' || phase === 'Failed') return;
    await sleep(10); // the attempt has not begun
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
