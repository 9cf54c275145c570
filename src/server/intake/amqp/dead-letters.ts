// The dead-letter queue for operators: list, show, retry, drop. Reading is not destructive: messages are taken without
// acknowledgement and go back when the channel closes. Copies of one body are shown as one.

import type { DeadLetter } from '../../../api/dead-letter.ts';
import { ApiError } from '../../../api/errors.ts';
import { isRecord } from '../../../base/is-record.ts';
import type { AmqpSettings } from './amqp-settings.ts';
import type { BrokerChannel, BrokerLink, BrokerMessage } from './broker.ts';
import type { ConfirmedPublisher } from './confirmed-publisher.ts';
import { deadLetterHeaders, deadLetterId } from './dead-letter.ts';
import { bytesOf, contentTypeOf } from './message-bytes.ts';

/** Messages that are looked at; what is behind them in the queue comes when these are gone. */
const lookedAtMax = 1_000;
/** Bodies are held until all are read. */
const bytesMax = 64 * 1024 * 1024;
/** Of a body that is shown. */
const shownBytesMax = 64 * 1024;

interface Letter {
  readonly id: string;
  readonly copies: readonly BrokerMessage[];
  readonly first: BrokerMessage;
}

export class DeadLetters {
  readonly #settings: AmqpSettings;
  readonly #connection: BrokerLink;
  readonly #publisher: ConfirmedPublisher;
  /** One look at a time: two would each see a part of the queue. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: {
    readonly settings: AmqpSettings;
    readonly connection: BrokerLink;
    readonly publisher: ConfirmedPublisher;
  }) {
    this.#settings = parts.settings;
    this.#connection = parts.connection;
    this.#publisher = parts.publisher;
  }

  /** `more`: there are others behind these. */
  list(): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }> {
    return this.#look(async (_channel, letters, more) => ({ items: letters.map((letter) => described(letter)), more }));
  }

  /** With its body. Throws `NotFound`. */
  show(id: string): Promise<DeadLetter> {
    return this.#look(async (_channel, letters) => described(find(letters, id), { body: true }));
  }

  /** Publishes it again where it came from, then removes it. Throws `NotFound`, and `Conflict` when no queue takes it. */
  retry(id: string): Promise<DeadLetter> {
    return this.#look(async (channel, letters) => {
      const letter = find(letters, id);
      const { exchange, routingKey } = originOf(letter.first, this.#settings);
      const { correlationId, replyTo, type, appId, priority, contentEncoding, headers } = letter.first;
      const contentType = contentTypeOf(letter.first);
      const ours = new Set<string>(Object.values(deadLetterHeaders));
      const kept = Object.entries(headers ?? {}).filter(([name]) => !ours.has(name) && !/^x-(first-)?death/.test(name));
      const fate = await this.#publisher.publish(
        {
          exchange,
          routingKey,
          messageId: id,
          ...Object.fromEntries(
            Object.entries({ correlationId, replyTo, type, appId, priority, contentEncoding, contentType }).filter(
              ([, value]) => value !== undefined,
            ),
          ),
          headers: Object.fromEntries(kept),
        },
        bytesOf(letter.first),
      );
      if (fate === 'unrouted')
        throw new ApiError('Conflict', `no queue takes messages of exchange "${exchange}" with key "${routingKey}"`);
      return removed(channel, letter);
    });
  }

  /** Throws `NotFound`. */
  drop(id: string): Promise<DeadLetter> {
    return this.#look(async (channel, letters) => removed(channel, find(letters, id)));
  }

  #look<T>(run: (channel: BrokerChannel, letters: readonly Letter[], more: boolean) => Promise<T>): Promise<T> {
    const looking = this.#last.then(() => this.#lookNow(run));
    this.#last = looking.catch(() => undefined);
    return looking;
  }

  async #lookNow<T>(
    run: (channel: BrokerChannel, letters: readonly Letter[], more: boolean) => Promise<T>,
  ): Promise<T> {
    const { trouble } = this.#connection;
    if (trouble !== undefined) throw new ApiError('Unavailable', trouble);
    const channel = await this.#connection.acquire();
    try {
      const { messages, more } = await this.#read(channel);
      return await run(channel, groupedById(messages), more);
    } finally {
      await channel.close();
    }
  }

  async #read(channel: BrokerChannel): Promise<{ messages: BrokerMessage[]; more: boolean }> {
    const messages: BrokerMessage[] = [];
    let bytes = 0;
    while (messages.length < lookedAtMax && bytes < bytesMax) {
      const message = await channel.basicGet({ queue: this.#settings.deadLetterQueue });
      if (!message) return { messages, more: false };
      messages.push(message);
      bytes += bytesOf(message).length;
    }
    return { messages, more: true };
  }
}

function groupedById(messages: readonly BrokerMessage[]): Letter[] {
  const byId = Map.groupBy(messages, (message) => deadLetterId(bytesOf(message)));
  return [...byId].flatMap(([id, copies]) => copies.slice(0, 1).map((first) => ({ id, copies, first })));
}

function find(letters: readonly Letter[], id: string): Letter {
  const found = letters.find((letter) => letter.id === id);
  if (found) return found;
  throw new ApiError('NotFound', `there is no dead letter "${id.slice(0, 80)}"`);
}

function removed(channel: BrokerChannel, letter: Letter): DeadLetter {
  for (const { deliveryTag } of letter.copies) channel.basicAck({ deliveryTag });
  return described(letter);
}

/** What the broker says of a message that it moved itself: the newest is the first. */
function deathOf({ headers }: BrokerMessage): Readonly<Record<string, unknown>> | undefined {
  const deaths: unknown = headers?.['x-death'];
  const newest: unknown = Array.isArray(deaths) ? deaths[0] : undefined;
  return isRecord(newest) ? newest : undefined;
}

function originOf(message: BrokerMessage, settings: AmqpSettings): { exchange: string; routingKey: string } {
  const death = deathOf(message);
  const keys: unknown = death?.['routing-keys'];
  const [first]: unknown[] = Array.isArray(keys) ? keys : [];
  const named: unknown = message.headers?.[deadLetterHeaders.exchange] ?? death?.['exchange'];
  return {
    exchange: typeof named === 'string' ? named : settings.exchange,
    routingKey: typeof first === 'string' ? first : message.routingKey,
  };
}

function described({ id, copies, first }: Letter, { body: wanted = false } = {}): DeadLetter {
  const body = bytesOf(first);
  const header = (name: string): string | undefined => {
    const value: unknown = first.headers?.[name];
    return typeof value === 'string' ? value : undefined;
  };
  const reason = header(deadLetterHeaders.reason);
  const brokerReason: unknown = deathOf(first)?.['reason'];
  const { timestamp, replyTo, correlationId } = first;
  const message = header(deadLetterHeaders.message);
  const requestId = requestIdOf(body);
  return {
    id,
    copies: copies.length,
    movedBy: reason === undefined ? 'broker' : 'berth',
    reason: reason ?? (typeof brokerReason === 'string' ? brokerReason : 'unknown'),
    ...(message === undefined ? {} : { message }),
    bytes: body.length,
    ...(timestamp === undefined ? {} : { movedAtMs: timestamp * 1000 }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(correlationId === undefined ? {} : { correlationId }),
    ...(wanted ? { body: body.subarray(0, shownBytesMax).toString('utf8') } : {}),
  };
}

/** A hint for people; the body may be anything. */
function requestIdOf(body: Buffer): string | undefined {
  if (body.length > shownBytesMax) return undefined;
  return /"request_id"\s*:\s*"([^"\\\u0000-\u001f]{1,64})"/.exec(body.toString('utf8'))?.[1];
}
