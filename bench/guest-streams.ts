// Into guests through control plane and agent with TLS on loopback: bytes of a port of a container, and the echo of a key at the serial
// console of a virtual machine that does nothing else: what an operating system takes for its answer is its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { startPodman } from '../src/agent/drivers/container/test-podman.ts';
import { bootDisk } from '../src/agent/drivers/qemu/boot-sector.ts';
import { makeCertificate } from '../test/certificate.ts';
import { startFleet } from '../test/processes.ts';
import { withBareGuest } from './bare-boot.ts';
import { type Emit, percentile } from './row.ts';
import { program } from './server-process.ts';

const megabytes = 512;
const keys = 1000;

export async function measureStreams(directory: string, emit: Emit): Promise<void> {
  const folder = join(directory, 'streams');
  await mkdir(folder);
  const tls = makeCertificate(folder);
  const podman = await startPodman();
  try {
    const pour = `exec nc -ll -p 9000 -e dd if=/dev/zero bs=1048576 count=${megabytes}`;
    await podman.load([{ name: 'pour', script: pour }]);
    const fleet = await startFleet(join(folder, 'fleet'), {
      drivers: ['container', 'qemu'],
      agent: { containerEngine: `unix://${podman.socketPath}` },
      program,
      tls,
    });
    try {
      const source = 'docker://localhost/pour:1';
      await fleet.client.create('image', { metadata: { name: 'pour' }, spec: { source, format: 'container' } });
      const disk = join(folder, 'fleet', 'echo.raw'); // where its agent opens files to images
      await writeFile(disk, bootDisk([{ do: 'print', text: 'berth: ready\n' }, { do: 'echo' }]));
      await fleet.client.create('image', {
        metadata: { name: 'echo' },
        spec: { source: `file://${disk}`, format: 'raw' },
      });
      for (const image of ['pour', 'echo']) {
        const spec = { image, cpus: 1, memoryMiB: 128, stopGraceMs: 0 };
        await fleet.client.create('instance', { metadata: { name: image }, spec });
      }
      for (const name of ['pour', 'echo']) {
        const { status } = await fleet.ready(name);
        if (status.phase === 'Failed') throw new Error(`${name} has failed: ${JSON.stringify(status.conditions)}`);
      }
      await portForward(fleet.environment, emit);
      const ca = await readFile(tls.certificate, 'utf8');
      const times = await throughBerth(fleet.url, fleet.environment.BERTH_TOKEN, ca);
      consoleEcho(times, await ofTheEngine(disk, folder), emit);
      for (const name of ['pour', 'echo']) {
        await fleet.client.delete('instance', name);
        await fleet.gone(name);
      }
    } finally {
      await fleet.stop();
    }
  } finally {
    await podman.stop();
  }
}

async function portForward(environment: Record<string, string>, emit: Emit): Promise<void> {
  const child = spawn(process.execPath, [program, 'port-forward', 'pour', '0:9000'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
  });
  try {
    const [said] = await once(child.stdout, 'data');
    const port = Number(/:(\d+) is port/.exec(String(said))?.[1]);
    const rates: number[] = [];
    for (let i = 0; rates.length < 3; i++) {
      const socket = connect(port, '127.0.0.1');
      const startedAt = performance.now();
      let bytes = 0;
      socket.on('data', (piece) => (bytes += piece.length));
      await once(socket, 'end');
      socket.destroy();
      if (bytes === 0 && i < 20) continue; // nothing listens there yet
      if (bytes !== megabytes * 1024 * 1024) throw new Error(`${bytes} bytes came through`);
      rates.push(bytes / 1e6 / ((performance.now() - startedAt) / 1000));
    }
    emit({
      suite: 'guests',
      name: 'portforward_mb_per_s',
      value: percentile(rates, 0.5),
      unit: 'MB/s',
      better: 'higher',
      goal: 100,
    });
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}

/** A guest's serial line. */
interface Line {
  send(text: string): void;
  onData(listener: (text: string) => void): void;
}

/** Milliseconds from a key to its echo: keys typed as at a keyboard, one after the other. */
async function echoTimes(line: Line): Promise<number[]> {
  let heard = '';
  let wake = (): void => {};
  line.onData((text) => {
    heard += text;
    wake();
  });
  const until = async (text: string): Promise<void> => {
    while (!heard.includes(text)) await new Promise<void>((resolve) => (wake = resolve));
    heard = '';
  };
  const times: number[] = [];
  for (let i = 0; i < keys; i++) {
    const key = String.fromCharCode(97 + (i % 26));
    const startedAt = performance.now();
    line.send(key);
    await until(key);
    times.push(performance.now() - startedAt);
  }
  return times;
}

/** The limit is the same guest's echo at QEMU's own standard input and output. */
function consoleEcho(times: readonly number[], limits: readonly number[], emit: Emit): void {
  const [p50, limit50] = [times, limits].map((all) => percentile(all, 0.5).toFixed(1));
  process.stderr.write(`  echo: p50 ${p50} ms, ${limit50} ms of the engine alone\n`);
  const [value, limit] = [percentile(times, 0.99), percentile(limits, 0.99)];
  const row = { suite: 'guests', name: 'console_echo_p99_ms', unit: 'ms', better: 'lower', goal: 20 } as const;
  emit({ ...row, value, limit, ratio: value / limit });
}

async function throughBerth(url: string, token: string, ca: string): Promise<number[]> {
  const socket = new WebSocket(`${url.replace('https', 'wss')}/v1/instances/echo/console?history=0`, ['berth.v1'], {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false,
    ca,
  });
  await once(socket, 'open');
  try {
    return await echoTimes({
      send: (text) => socket.send(Buffer.from(text)),
      onData(listener) {
        socket.on('message', (data: Buffer, isBinary) => {
          if (isBinary) listener(data.toString('latin1'));
        });
      },
    });
  } finally {
    socket.close();
  }
}

function ofTheEngine(image: string, directory: string): Promise<number[]> {
  return withBareGuest({ path: image, format: 'raw' }, directory, ({ qemu }) =>
    echoTimes({
      send: (text) => void qemu.stdin.write(text),
      onData: (listener) => void qemu.stdout.on('data', (data: Buffer) => listener(data.toString('latin1'))),
    }),
  );
}
