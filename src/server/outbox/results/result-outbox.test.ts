import { expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { system } from '../../../base/system.ts';
import { testCache, testJob } from '../../../core/testing.ts';
import type { Decider } from '../../decide.ts';
import type { ConfirmedPublisher } from '../../intake/amqp/confirmed-publisher.ts';
import { ResultOutbox } from './result-outbox.ts';

it('waits only a short time at its end for a broker that confirms nothing', async () => {
  const clock = createManualClock();
  const due = testJob('a', {}, { phase: 'Succeeded', result: { messageId: 'm', body: '{}', exchange: 'waiting' } });
  let sent = 0;
  const publish = (): Promise<never> => {
    sent += 1;
    return new Promise(() => {});
  };
  const outbox = new ResultOutbox({
    decider: { cache: testCache([due]), clock } as unknown as Decider, // it commits nothing before a confirm
    log: silentLogger,
    leads: () => true,
    publisher: { publish } as unknown as ConfirmedPublisher, // of a blocked broker
    exchange: 'solstice.jobs',
  });
  outbox.start();
  await clock.advanceSettled(1_000, system.turn);
  expect(sent).toBe(1);
  let stopped = false;
  const stopping = outbox.stop().then(() => (stopped = true));
  await clock.advanceSettled(1_000, system.turn);
  expect(stopped).toBe(false);
  await clock.advanceSettled(1_000, system.turn);
  await stopping;
});
