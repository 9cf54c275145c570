// Webhooks as their receivers see them: a real server sends to real receivers, and the verifiers of docs/webhooks.md accept what comes.

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createUserClient, type UserClient } from '../src/api/client/user-client.ts';
import { parse } from '../src/api/parse.ts';
import { CloudEvent } from '../src/api/news/cloud-event.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly event: CloudEvent;
}

/** What it got, and how it answers. */
class Receiver {
  readonly received: Received[] = [];
  answer: (received: Received) => { status: number; headers?: Record<string, string> } | 'never' = () => ({
    status: 204,
  });
  #server: Server | undefined;

  async start(): Promise<string> {
    this.#server = createServer((asked, answer) => {
      const pieces: Buffer[] = [];
      asked.on('data', (piece: Buffer) => pieces.push(piece));
      asked.on('end', () => {
        const body = Buffer.concat(pieces).toString();
        const received = { headers: asked.headers, body, event: parse(CloudEvent, JSON.parse(body)) };
        this.received.push(received);
        const says = this.answer(received);
        if (says !== 'never') answer.writeHead(says.status, says.headers).end('x'.repeat(10));
      });
    }).listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/berth`;
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }
}

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
let directory: string;
let server: RunningServer;
let api: UserClient;
let receivers: Receiver[] = [];

const start = async (): Promise<void> => {
  const config = parse(ServerConfig, {
    listen: '127.0.0.1:0',
    dataDirectory: join(directory, 'server'),
    webhookAllow: ['127.0.0.1/32'],
  });
  server = await startServer(config, { log: silentLogger });
  api = createUserClient({ fetch: systemFetch, url: server.url, token: server.operatorToken });
};

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-webhooks-'));
  await start();
  await api.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.example/tiny.qcow2' } });
  await api.create('secret', { metadata: { name: 'hooks' }, spec: { description: '', values: { current: secret } } });
});
afterEach(async () => {
  for (const receiver of receivers) await receiver.stop();
  receivers = [];
  for (const { metadata } of (await api.list('webhook')).items) await api.delete('webhook', metadata.name);
});
afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

async function webhook(name: string, spec: object = {}): Promise<Receiver> {
  const receiver = new Receiver();
  receivers.push(receiver);
  const url = await receiver.start();
  await api.create('webhook', {
    metadata: { name },
    spec: { url, secrets: [{ secret: 'hooks', key: 'current' }], ...spec },
  });
  return receiver;
}

const task = (name: string) =>
  api.create('task', { metadata: { name }, spec: { cpus: 1, memoryMiB: 64, ttlMs: 60_000 } });
const soon = { timeout: 15_000 };

describe('a webhook', () => {
  it('gets the events that it wants, once, in order, and signed so that the documented verifiers accept them', async () => {
    const receiver = await webhook('signed', { events: ['berth.v1.task.*'] });
    await task('signed-1');
    await api.delete('task', 'signed-1');
    await expect.poll(() => receiver.received.some(({ event }) => event.data.reason === 'Deleted'), soon).toBe(true);
    const reasons = receiver.received.map(({ event }) => event.data.reason);
    expect([reasons.at(0), reasons.at(-1)]).toEqual(['Accepted', 'Deleted']);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(reasons.length);
    const [first] = receiver.received;
    expect(first?.headers['webhook-id']).toBe(first?.event.id);
    for (const [language, run] of Object.entries(verifiers)) {
      expect([language, await run(first, secret)]).toEqual([language, true]);
      expect([language, await run(first && { ...first, body: `${first.body} ` }, secret)]).toEqual([language, false]);
      expect([language, await run(first, `whsec_${Buffer.alloc(32, 8).toString('base64')}`)]).toEqual([
        language,
        false,
      ]);
    }
  });

  it('is measured', async () => {
    const receiver = await webhook('measured', { events: ['berth.v1.task.Accepted'] });
    receiver.answer = () => ({ status: 500 });
    await task('measured-1');
    const metrics = async () => {
      const authorization = `Bearer ${server.operatorToken}`;
      return (await systemFetch(`${server.url}/metrics`, { headers: { authorization } })).text();
    };
    await expect.poll(metrics, soon).toContain('berth_webhook_waiting_events{webhook="default/measured"} 1');
    expect(await metrics()).toMatch(/berth_webhook_attempts_total\{outcome="failed"\} [1-9]/);
  });

  it('is tried again when it fails, while others of other subjects go on, and takes it up after a restart', async () => {
    const receiver = await webhook('failing', { events: ['berth.v1.task.Accepted'] });
    receiver.answer = ({ event }) => ({ status: event.subject.endsWith('/failing-1') ? 500 : 204 });
    await task('failing-1');
    await task('failing-2');
    await expect
      .poll(() => receiver.received.map(({ event }) => event.subject.split('/').at(-1)), soon)
      .toContain('failing-2');
    await expect
      .poll(async () => (await api.webhookDeliveries('failing')).items.find(({ state }) => state === 'Waiting'), soon)
      .toMatchObject({ attempts: 1, status: 500, error: 'the receiver answered 500' });
    await server.close();
    receiver.answer = () => ({ status: 204 });
    const before = receiver.received.length;
    await start();
    await expect
      .poll(() => receiver.received.slice(before).map(({ event }) => event.subject.split('/').at(-1)), soon)
      .toEqual(['failing-1']);
  });

  it('that is gone is disabled, and enabled by a replace', async () => {
    const receiver = await webhook('gone', { events: ['berth.v1.task.Accepted'] });
    receiver.answer = () => ({ status: 410 });
    await task('gone-1');
    await expect.poll(async () => (await api.get('webhook', 'gone')).status.disabled?.reason, soon).toContain('410');
    const { spec } = await api.get('webhook', 'gone');
    await api.replace('webhook', 'gone', { spec });
    expect((await api.get('webhook', 'gone')).status.disabled).toBeUndefined();
  });

  it('that hangs delays no other', async () => {
    const hanging = await webhook('hanging', { events: ['berth.v1.task.Accepted'] });
    hanging.answer = () => 'never';
    const other = await webhook('other', { events: ['berth.v1.task.Accepted'] });
    for (let i = 0; i < 5; i++) await task(`hang-${i}`);
    await expect.poll(() => other.received.length, soon).toBe(5);
    expect(hanging.received.length).toBeLessThanOrEqual(2);
  });

  it('follows no redirect', async () => {
    const target = await webhook('target', { events: ['berth.v1.nothing.*'] });
    const receiver = await webhook('redirects', { events: ['berth.v1.task.Accepted'] });
    const { spec } = await api.get('webhook', 'target');
    receiver.answer = () => ({ status: 307, headers: { location: spec.url } });
    await task('redirected');
    await expect
      .poll(async () => (await api.webhookDeliveries('redirects')).items[0]?.error, soon)
      .toBe('the receiver answered 307');
    expect(target.received).toEqual([]);
  });

  it('is tried on request, and an event is sent again with its id', async () => {
    const receiver = await webhook('tried', { events: ['berth.v1.job.*'] });
    const { event } = await api.testWebhook('tried');
    await expect.poll(() => receiver.received.map((each) => each.event.id), soon).toEqual([event]);
    await api.resendDelivery('tried', event);
    await expect.poll(() => receiver.received.map((each) => each.event.id), soon).toEqual([event, event]);
  });

  it('is refused where it may not lead, without a secret, and without a right', async () => {
    const secrets = [{ secret: 'hooks', key: 'none' }];
    const create = (spec: object) => api.create('webhook', { metadata: { name: 'bad' }, spec });
    await expect(create({ url: 'https://receiver.example/', secrets })).rejects.toMatchObject({
      field: 'spec.secrets[0]',
    });
    await expect(create({ url: 'ftp://receiver.example/', secrets })).rejects.toMatchObject({ field: 'spec.url' });
    const hidden = await webhook('hidden', {
      url: 'http://169.254.169.254/latest/',
      events: ['berth.v1.task.Accepted'],
    });
    await task('hidden-1');
    await expect
      .poll(async () => (await api.webhookDeliveries('hidden')).items[0]?.error, soon)
      .toContain('is not an address of the open network');
    expect(hidden.received).toEqual([]);
  });
});

type Verifier = (received: Received | undefined, secret: string) => Promise<boolean>;

const block = async (language: string): Promise<string> => {
  const document = await readFile(new URL('../docs/webhooks.md', import.meta.url), 'utf8');
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(document)?.[1] ?? '';
};

const verifiers: Record<string, Verifier> = {
  async node(received, key) {
    const file = join(directory, 'verify.mjs');
    await writeFile(file, await block('js'));
    const { verify } = (await import(file)) as { verify: (...words: unknown[]) => boolean };
    return verify(key, received?.headers, received?.body);
  },
  async python(received, key) {
    const call = 'import json,sys\nwords = json.load(sys.stdin)\nprint(verify(words[0], words[1], words[2]))';
    const input = JSON.stringify([key, received?.headers, received?.body]);
    const said = execFileSync('/usr/bin/python3', ['-I', '-c', `${await block('python')}\n${call}`], { input });
    return said.toString().trim() === 'True';
  },
  async go(received, key) {
    const input = JSON.stringify({ key, headers: received?.headers, body: received?.body });
    return (
      execFileSync(await goVerifier(), { input })
        .toString()
        .trim() === 'true'
    );
  },
};

const goMain = `package main
import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)
func main() {
	var given struct { Key, Body string; Headers map[string]string }
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil { panic(err) }
	headers := http.Header{}
	for name, value := range given.Headers { headers.Set(name, value) }
	fmt.Println(verify(given.Key, headers, []byte(given.Body), time.Now()))
}`;

let goProgram: Promise<string> | undefined;

/** Compiled once. */
function goVerifier(): Promise<string> {
  goProgram ??= (async () => {
    const files = [join(directory, 'verify.go'), join(directory, 'main.go')];
    await writeFile(files[0] ?? '', `package main\n${await block('go')}`);
    await writeFile(files[1] ?? '', goMain);
    const program = join(directory, 'verify-go');
    execFileSync('gccgo-12', ['-static-libgo', '-o', program, ...files]);
    return program;
  })();
  return goProgram;
}
