// RabbitMQ behind broker.ts.

import { afterAll, beforeAll, describe } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { system, systemClock } from '../../../base/system.ts';
import { brokerAt } from './broker-connection.ts';
import { brokerConformance } from './conformance.ts';
import { startRabbitmq, type TestRabbitmq } from './test-rabbitmq.ts';

let broker: TestRabbitmq;
beforeAll(async () => {
  broker = await startRabbitmq();
}, 120_000);
afterAll(() => broker?.dispose());

describe('RabbitMQ', () => {
  const link = () => brokerAt(broker.url, { clock: systemClock, log: silentLogger })('conformance');
  brokerConformance(
    () => ({ link, pass: () => system.turn() }),
    (work) => work,
  );
});
