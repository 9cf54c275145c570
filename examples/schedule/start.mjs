// `npm run example:schedule`: everything on this machine. A broker, a server, and another system with 20 hosts; then a host of them, asked
// for over HTTP and over RabbitMQ. All of it is removed at the end.

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from 'rabbitmq-client';
import { berth, Example, say } from '../local/example.mjs';
import { freePort, startRabbitmq } from '../local/rabbitmq.mjs';

const asked = { requested_cpu: 4, requested_memory: 8192, requested_pool: 'metal', dedicated: false };

await Example.run(async (example) => {
  const { directory } = example;
  say('starting RabbitMQ');
  const broker = await startRabbitmq(join(directory, 'rabbitmq'));
  example.onEnd(() => broker.stop());

  say('starting a server');
  const listen = `127.0.0.1:${await freePort()}`;
  const started = await example.startBerth(['server', '--listen', listen, '--data-dir', join(directory, 'server')], {
    environment: { ...process.env, BERTH_SERVER_SCHEDULE_AMQP_URL: broker.url },
    ready: /listens/,
  });
  const url = /https?:\/\/[^\s"]+/.exec(started)[0];
  const token = (await readFile(join(directory, 'server/operator.token'), 'utf8')).trim();

  say('an inventory: the hosts of another system, whose loads change');
  const environment = { ...process.env, BERTH_URL: url, BERTH_TOKEN: token, BERTH_CONFIG: join(directory, 'none.yaml') };
  const mock = ['inventory', 'mock', '--hosts', '20', '--port', '0', '--vary', '2'];
  const source = await example.startBerth(mock, { environment, ready: /^http/, from: 'stdout' });
  execFileSync(process.execPath, [berth, 'inventory', 'create', 'metal', '--from', source, '--interval', '1'], {
    env: environment,
    stdio: 'inherit',
  });
  const call = callerOf(url, token);
  await until(async () => (await call('GET', '/v1/inventories/metal')).status.state === 'Fresh');

  say('POST /schedule, then GET /result/ID');
  const { task_id: first } = await call('POST', '/schedule', asked);
  await completed(() => call('GET', `/result/${first}`));
  await call('DELETE', `/schedule/${first}`);

  say('a message to the exchange "tasks", and its result');
  const { id } = await askBroker(broker.url);
  await call('GET', `/result/${id}`);
  await call('DELETE', `/schedule/${id}`);
});

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
  await until(async () => {
    const { status, error } = await look();
    if (status === 'failed') throw new Error(error);
    return status === 'completed';
  });
}

async function until(holds) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 200));
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
