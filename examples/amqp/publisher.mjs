// A publisher of jobs, as a CI system has one: it knows AMQP and the two messages, and nothing of Berth.
//
//   AMQP_URL=amqp://… node publisher.mjs REPO_URL COMMIT_SHA [RUNS_ON]
//
// It sends a JobRequest, waits for the JobResult on a queue of its own, and prints it. Exit code 0: the job succeeded.

import { randomUUID } from 'node:crypto';
import { Connection } from 'rabbitmq-client';

const [repoUrl, commitSha, runsOn] = process.argv.slice(2);
const exchange = process.env.AMQP_EXCHANGE || 'solstice.jobs';
const connection = new Connection(process.env.AMQP_URL);
connection.on('error', (error) => process.stderr.write(`broker: ${error.message}\n`));

const channel = await connection.acquire();
await channel.confirmSelect();
channel.on('basic.return', () => {
  process.stderr.write(`no queue takes messages of exchange "${exchange}"; is the server running?\n`);
  process.exit(1);
});

// Every result goes to this exchange, for whoever binds a queue; the own one comes to the queue of reply_to as well.
const results = 'example.results';
await channel.queueDeclare({ queue: results, durable: true });
await channel.queueBind({ queue: results, exchange, routingKey: 'jobresult.v1' });
const { queue: replies } = await channel.queueDeclare({ queue: '', exclusive: true });

const request = {
  schema_version: 'jobrequest.v1',
  request_id: randomUUID(),
  source: 'manual',
  repo_url: repoUrl,
  commit_sha: commitSha,
  ...(runsOn === undefined ? {} : { runs_on: runsOn }),
  submitted_at: new Date().toISOString(),
};
const result = new Promise((resolve) => {
  void channel.basicConsume({ queue: replies, noAck: true }, (message) => {
    if (message.correlationId === request.request_id) resolve(message.body);
  });
});
await channel.basicPublish(
  {
    exchange,
    routingKey: 'jobrequest.v1',
    mandatory: true,
    durable: true,
    replyTo: replies,
    correlationId: request.request_id,
  },
  request, // the library writes JSON
);
process.stderr.write(`sent request ${request.request_id}\n`);

const answer = await result;
process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
await channel.close();
await connection.close();
process.exitCode = answer.success ? 0 : 1;
