import { expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { system } from '../../../base/system.ts';
import { testCache, testJob } from '../../../core/testing.ts';
import type { Decider } from '../../decide.ts';
import type { Envelope } from '../../intake/amqp/broker.ts';
import type { ConfirmedPublisher } from '../../intake/amqp/confirmed-publisher.ts';
import { ResultOutbox } from './result-outbox.ts';

it('sends the trace of the request, and waits only a short time at its end for a broker that confirms nothing', async () => {
  const clock = createManualClock();
  const job = testJob('a', {}, { phase: 'Succeeded', result: { messageId: 'm', body: '{}', exchange: 'waiting' } });
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const due = { ...job, metadata: { ...job.metadata, traceParent: traceparent } };
  let sent = 0;
  const publish = ({ headers }: Envelope): Promise<never> => {
    sent += 1;
    expect(headers).toEqual({ traceparent });
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
