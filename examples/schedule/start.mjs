// `npm run example:schedule`: everything on this machine. A broker, a server, and the agent of one host with the fake driver; then a host
// for another system, asked for over HTTP and over RabbitMQ. All of it is removed at the end.

import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Connection } from 'rabbitmq-client';
import { freePort, startRabbitmq } from '../amqp/rabbitmq.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const berth = join(here, '../../bin/berth.js');
const directory = await mkdtemp(join(tmpdir(), 'berth-example-'));
await chmod(directory, 0o755); // the broker's user passes through it
const say = (text) => process.stdout.write(`\n== ${text}\n`);
const asked = { requested_cpu: 1, requested_memory: 64, dedicated: false };

const stops = [() => rm(directory, { recursive: true, force: true })];
try {
  await run();
} finally {
  for (const stop of stops.toReversed()) await stop();
}

async function run() {
  say('starting RabbitMQ');
  const broker = await startRabbitmq(join(directory, 'rabbitmq'));
  stops.push(() => broker.stop());

  say('starting a server, and the agent of host rack-1');
  const url = await startServer(broker.url);
  const token = (await readFile(join(directory, 'server/operator.token'), 'utf8')).trim();
  await startAgent(url, token);

  say('POST /schedule, then GET /result/ID');
  const call = callerOf(url, token);
  const { task_id: first } = await call('POST', '/schedule', asked);
  await completed(() => call('GET', `/result/${first}`));
  await call('DELETE', `/schedule/${first}`);

  say('a message to the exchange "tasks", and its result');
  const { id } = await askBroker(broker.url);
  await call('GET', `/result/${id}`);
  await call('DELETE', `/schedule/${id}`);
}

async function startServer(brokerUrl) {
  const words = ['server', '--listen', `127.0.0.1:${await freePort()}`, '--data-dir', join(directory, 'server')];
  const environment = { ...process.env, BERTH_SERVER_SCHEDULE_AMQP_URL: brokerUrl };
  const line = await startBerth(words, environment, /listens/);
  return /https?:\/\/[^\s"]+/.exec(line)[0];
}

async function startAgent(url, token) {
  const environment = { ...process.env, BERTH_URL: url, BERTH_TOKEN: token, BERTH_CONFIG: join(directory, 'config.yaml') };
  const hostToken = execFileSync(process.execPath, [berth, 'host', 'token', 'rack-1'], { env: environment });
  const tokenFile = join(directory, 'rack-1.token');
  await writeFile(tokenFile, hostToken, { mode: 0o600 });
  const words = ['agent', '--name', 'rack-1', '--server', url, '--token-file', tokenFile, '--driver', 'fake'];
  await startBerth([...words, '--data-dir', join(directory, 'agent'), '--label', 'ip=10.0.0.1'], environment, /registered/);
}

/** Resolves with the first line that matches. */
async function startBerth(words, environment, ready) {
  const child = spawn(process.execPath, [berth, ...words], { env: environment, stdio: ['ignore', 'inherit', 'pipe'] });
  const exited = once(child, 'exit');
  stops.push(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  for await (const line of createInterface({ input: child.stderr })) {
    if (!ready.test(line)) continue;
    child.stderr.resume();
    return line;
  }
  throw new Error(`berth ${words[0]} ended`);
}

function callerOf(url, token) {
  return async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json', 'idempotency-key': randomUUID() }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    process.stdout.write(`${method} ${path}\n  ${response.status} ${text}\n`);
    if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`);
    return JSON.parse(text);
  };
}

async function completed(look) {
  for (;;) {
    const { status, error } = await look();
    if (status === 'completed') return;
    if (status === 'failed') throw new Error(error);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** As the other system does it: it knows AMQP and two messages, and nothing of Berth. */
async function askBroker(url) {
  const connection = new Connection(url);
  const channel = await connection.acquire();
  try {
    await channel.confirmSelect();
    const { queue } = await channel.queueDeclare({ queue: '', exclusive: true });
    const request = { ...asked, task_id: randomUUID() };
    const result = new Promise((resolve) => {
      void channel.basicConsume({ queue, noAck: true }, ({ body }) => resolve(body));
    });
    process.stdout.write(`task.schedule\n  ${JSON.stringify(request)}\n`);
    await channel.basicPublish(
      { exchange: 'tasks', routingKey: 'task.schedule', mandatory: true, durable: true, replyTo: queue },
      request,
    );
    const body = await result;
    process.stdout.write(`result\n  ${JSON.stringify(body)}\n`);
    if (body.status !== 'completed') throw new Error(body.error);
    return body;
  } finally {
    await channel.close(); // the connection waits for it
    await connection.close();
  }
}
