// The false broker behind broker.ts does as RabbitMQ does.

import { describe } from 'vitest';
import { seededPrng } from '../../../base/prng.ts';
import { system } from '../../../base/system.ts';
import { brokerConformance } from '../../../server/intake/amqp/conformance.ts';
import { createProcessClock } from '../process-clock.ts';
import { Timeline } from '../timeline.ts';
import { FalseBroker } from './false-broker.ts';
import { FalseLink } from './false-link.ts';

describe('the false broker', () => {
  const timeline = new Timeline(seededPrng(1));
  const broker = new FalseBroker();
  const weather = { delayMs: () => 2, breaks: () => false, confirmLateMs: () => 0 };
  const clock = createProcessClock(timeline);
  const link = () => new FalseLink({ broker, reachable: () => true, timeline, clock, prng: seededPrng(2), weather });
  brokerConformance(
    () => ({ link, pass: () => system.turn() }),
    async (work) => {
      let over = false;
      const ended = work.finally(() => {
        over = true;
      });
      void ended.catch(() => undefined); // it is awaited below
      while (!over) {
        timeline.step(Number.POSITIVE_INFINITY);
        await system.turn();
      }
      return ended;
    },
  );
});
