// Exchanges and queues of the intake: what exists is used as it is, what is missing is declared. The order matters: a
// queue that takes messages before its dead letters have a place would lose them.

import { ApiError } from '../../../api/errors.ts';
import { describeError } from '../../../base/log.ts';
import type { AmqpSettings } from './amqp-settings.ts';
import { type BrokerChannel, type BrokerLink, replyCodeOf } from './broker.ts';

interface Step {
  /** The variable that names it, for the message. */
  readonly variable: string;
  readonly what: string;
  /** Fails with NOT_FOUND when it does not exist. */
  readonly find?: (channel: BrokerChannel) => Promise<unknown>;
  readonly make: (channel: BrokerChannel) => Promise<unknown>;
}

/** What a change of the configuration or of the broker must mend; all else is tried again. */
const refusals = new Set(['ACCESS_REFUSED', 'NOT_ALLOWED', 'NOT_FOUND', 'PRECONDITION_FAILED', 'RESOURCE_LOCKED']);

/** Throws `InvalidRequest` naming the variable when the broker refuses. Repeating it is harmless. */
export async function declareTopology(connection: BrokerLink, settings: AmqpSettings): Promise<void> {
  for (const step of stepsOf(settings)) {
    try {
      await takeStep(connection, step);
    } catch (error) {
      if (!refusals.has(replyCodeOf(error) ?? '')) throw error;
      throw new ApiError(
        'InvalidRequest',
        `${step.variable}: the broker refuses ${step.what}: ${replyCodeOf(error)}: ${describeError(error)}`,
        { cause: error },
      );
    }
  }
}

/** The broker closes the channel of a step that it refuses, so each has its own. */
async function takeStep(connection: BrokerLink, { find, make }: Step): Promise<void> {
  const onOwnChannel = async (run: (channel: BrokerChannel) => Promise<unknown>): Promise<void> => {
    const channel = await connection.acquire();
    try {
      await run(channel);
    } finally {
      await channel.close();
    }
  };
  if (find) {
    try {
      return await onOwnChannel(find);
    } catch (error) {
      if (replyCodeOf(error) !== 'NOT_FOUND') throw error;
    }
  }
  await onOwnChannel(make);
}

function stepsOf(settings: AmqpSettings): Step[] {
  const steps = stepsOfQueue(settings);
  const { namedBy } = settings;
  return namedBy === undefined ? steps : steps.map((step) => ({ ...step, variable: namedBy }));
}

function stepsOfQueue(settings: AmqpSettings): Step[] {
  const { exchange, queue, routingKey, resultExchange, deadLetterExchange, deadLetterQueue } = settings;
  const queueArguments = { 'x-dead-letter-exchange': deadLetterExchange };
  return [
    exchangeStep('AMQP_QUEUE', deadLetterExchange, 'fanout'),
    queueStep(deadLetterQueue, {}),
    bindStep('AMQP_QUEUE', { queue: deadLetterQueue, exchange: deadLetterExchange, routingKey: '' }),
    exchangeStep('AMQP_EXCHANGE', exchange, settings.exchangeType ?? 'direct'),
    ...(resultExchange === exchange || resultExchange === ''
      ? []
      : [exchangeStep('AMQP_RESULT_EXCHANGE', resultExchange, 'direct')]),
    ...retrySteps(settings),
    queueStep(queue, queueArguments),
    bindStep('AMQP_ROUTING_KEY', { queue, exchange, routingKey }),
  ];
}

/** Messages lie in this queue until their next attempt, and then go where they came from. */
function retrySteps({ retry, exchange, routingKey }: AmqpSettings): Step[] {
  if (retry === undefined) return [];
  const back = { 'x-dead-letter-exchange': exchange, 'x-dead-letter-routing-key': routingKey };
  return [queueStep(retry.queue, { ...back, 'x-message-ttl': retry.delayMs })];
}

function exchangeStep(variable: string, exchange: string, type: 'direct' | 'fanout' | 'topic'): Step {
  return {
    variable,
    what: `exchange "${exchange}"`,
    find: (channel) => channel.exchangeDeclare({ exchange, passive: true }),
    make: (channel) => channel.exchangeDeclare({ exchange, type, durable: true }),
  };
}

function queueStep(queue: string, queueArguments: Readonly<Record<string, string | number>>): Step {
  return {
    variable: 'AMQP_QUEUE',
    what: `queue "${queue}"`,
    find: (channel) => channel.queueDeclare({ queue, passive: true }),
    make: (channel) => channel.queueDeclare({ queue, durable: true, arguments: queueArguments }),
  };
}

function bindStep(variable: string, to: { queue: string; exchange: string; routingKey: string }): Step {
  return {
    variable,
    what: `to bind queue "${to.queue}" to exchange "${to.exchange}" with "${to.routingKey}"`,
    make: (channel) => channel.queueBind(to),
  };
}
