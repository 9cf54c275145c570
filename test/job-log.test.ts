// `berth job run` against a control plane that is killed and started again while the log arrives: every line is printed once.

import { afterEach, expect, it } from 'vitest';
import type { GuestStatus } from '../src/api/agent-protocol.ts';
import type { Job } from '../src/api/resources/job.ts';
import { systemClock, systemFetch } from '../src/base/system.ts';
import type { Cli } from '../src/cli/cli.ts';
import { runProgram } from '../src/cli/program.ts';
import { MemoryRunStorage } from '../src/server/runs/memory-run-storage.ts';
import { defaultRunLimits, RunFiles } from '../src/server/runs/run-files.ts';
import { startTestServer, testRegistration } from '../src/server/testing.ts';
import { createMemoryStore } from '../src/store/memory/memory-store.ts';

const store = createMemoryStore();
const storage = new MemoryRunStorage();
const start = () =>
  startTestServer({ store, runFiles: new RunFiles({ storage, limits: defaultRunLimits, clock: systemClock }) });
let server: Awaited<ReturnType<typeof start>>;
afterEach(() => server.close());

function commandLine(): { cli: Cli; stdout: () => string; stderr: () => string } {
  let stdout = '';
  let stderr = '';
  const text = (data: string | Uint8Array): string => Buffer.from(data).toString();
  const cli: Cli = {
    stdout: { write: (data) => (stdout += text(data)) },
    stderr: { write: (data) => (stderr += text(data)) },
    stdin: (async function* () {})(),
    environment: { NO_COLOR: '1', BERTH_URL: 'https://berth.test', BERTH_TOKEN: 'operator' },
    homeDirectory: '/nonexistent',
    clock: systemClock,
    fetch: (url, init) => systemFetch(url.replace('https://berth.test', server.url), init),
    runProgram: () => Promise.resolve(0),
    self: ['berth'],
    version: 'test',
    interruption: () => new AbortController().signal,
  };
  return { cli, stdout: () => stdout, stderr: () => stderr };
}

async function until(wanted: (job: Job) => boolean): Promise<Job> {
  const { items, revision } = await server.client.list('job');
  const found = items.find(wanted);
  if (found) return found;
  for await (const change of server.client.watch('job', { revision }))
    if (change.type === 'put' && wanted(change.resource)) return change.resource;
  throw new Error('the watch ended');
}

it('prints each line of a job once, whatever becomes of the server', async () => {
  server = await start();
  await server.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tmp/tiny.qcow2', defaults: { cpus: 1, memoryMiB: 16, diskGiB: 1 } },
  });
  const { epoch } = await server.agentClient('h1').register(testRegistration());
  const { cli, stdout, stderr } = commandLine();
  const exitCode = runProgram(cli, ['job', 'run', 'tiny', '--', 'seq 300']);
  const { status } = await until(({ status: { phase } }) => phase === 'Placing');
  const instanceId = status.attempts[0]?.instanceId ?? '';

  const texts = Array.from({ length: 300 }, (_, i) => `line ${i}`);
  const log = Buffer.from(texts.map((text) => `2026-01-02T03:04:05.000Z stdout F ${text}\n`).join(''));
  const pieceBytes = 997; // in the middle of lines
  for (let offset = 0, piece = 1; offset < log.length; piece += 1) {
    const path = `/v1/hosts/h1/runs/${instanceId}/log?epoch=${epoch}&incarnation=1&offset=${offset}`;
    const answer = await systemFetch(server.url + path, {
      method: 'PUT',
      headers: { authorization: 'Bearer host:h1', 'content-type': 'application/octet-stream' },
      body: log.subarray(offset, offset + pieceBytes),
    });
    const { size } = (await answer.json()) as { size: number };
    expect(size).toBe(Math.min(offset + pieceBytes, log.length));
    offset = size;
    if (piece % 5 !== 0) continue;
    await server.drop();
    server = await start();
  }
  const run = { state: 'ended', outcome: 'exited', exitCode: 4, logBytes: log.length } as const;
  const guest: GuestStatus = { state: 'running', ready: true, ports: [], phases: [], run };
  const reports = [{ instanceId, incarnation: 1, sequence: 1, observedGeneration: 1, guest }];
  await server.agentClient('h1').report({ epoch, reports });

  expect(await exitCode).toBe(4);
  expect(stdout()).toBe(texts.map((text) => `${text}\n`).join(''));
  expect(stderr()).toMatch(/berth: job "tiny-\w+" failed with exit code 4\n$/);
});
