// One connection to the broker. The library connects again by itself, with back-off and jitter; this knows whether it is
// connected, and why not. Consumers and publishers have one each: alarms of the broker block those that publish.

// Not by import(): in the bundle that would bring no names. Only what is configured loads this file.
import { Connection } from 'rabbitmq-client';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { system } from '../../../base/system.ts';
import { tlsFault, type TlsFiles } from '../../../base/tls/tls-files.ts';
import { placeOfBroker } from './amqp-settings.ts';
import { type BrokerChannel, type BrokerLink, type OpenLink, replyCodeOf } from './broker.ts';
import { keepBytes } from './message-bytes.ts';

const closeWithinMs = 2_000;

export class BrokerConnection implements BrokerLink {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly first: Promise<Error | undefined>;
  #trouble: string | undefined = 'not connected yet';
  #blocked: string | undefined;
  readonly #wantFine = new Set<() => void>();

  private constructor(connection: Connection, { clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#connection = connection;
    this.#clock = clock;
    this.#log = log;
    this.first = new Promise((resolve) => {
      connection.on('connection', () => {
        this.#connected();
        resolve(undefined);
      });
      connection.on('error', (error: unknown) => {
        this.#failed(error);
        resolve(error instanceof Error ? error : new Error(String(error)));
      });
    });
    connection.on('connection.blocked', (reason) => this.#setBlocked(`blocked by the broker: ${reason}`));
    connection.on('connection.unblocked', () => this.#setBlocked(undefined));
  }

  /** Begins to connect, and does not wait for it. */
  static open(parts: {
    readonly url: string;
    readonly tls?: TlsFiles | undefined;
    readonly name: string;
    readonly clock: Clock;
    readonly log: Logger;
  }): BrokerConnection {
    return new BrokerConnection(
      new Connection({
        ...{ url: parts.url, connectionName: parts.name, retryLow: 500, retryHigh: 15_000 },
        ...(parts.tls === undefined ? {} : { tls: { ...parts.tls } }),
      }),
      parts,
    );
  }

  get trouble(): string | undefined {
    return this.#trouble ?? this.#blocked;
  }

  async fine(withinMs: number): Promise<boolean> {
    if (this.trouble === undefined) return true;
    const stop = new AbortController();
    const resume = (): void => stop.abort();
    this.#wantFine.add(resume);
    await sleep(this.#clock, withinMs, stop.signal);
    this.#wantFine.delete(resume);
    return this.trouble === undefined;
  }

  async acquire(): Promise<BrokerChannel> {
    const channel = await this.#connection.acquire({ emitErrorsFromChannel: true });
    channel.on('error', (error: unknown) =>
      this.#log.warn('the broker closed a channel', { error: describeError(error) }),
    );
    keepBytes(channel);
    return channel;
  }

  afterTurn(run: () => void): void {
    system.afterTurn(run);
  }

  /** Waits for the broker's farewell for a short time only. */
  async close(): Promise<void> {
    for (const resume of this.#wantFine) resume();
    const closed = this.#connection.close().catch(() => undefined);
    const stop = new AbortController();
    await Promise.race([closed, sleep(this.#clock, closeWithinMs, stop.signal)]);
    stop.abort();
    this.#connection.unsafeDestroy();
  }

  #connected(): void {
    if (this.#trouble !== undefined) this.#log.info('connected to the broker');
    this.#trouble = undefined;
    this.#blocked = undefined;
    for (const resume of this.#wantFine) resume();
  }

  #failed(error: unknown): void {
    const reason = describeError(error) || replyCodeOf(error) || 'no reason';
    const fault = tlsFault(error);
    const told = fault === undefined ? reason : `${reason}; ${advice[fault]}`;
    this.#trouble = `the broker cannot be reached: ${told}`;
    this.#log.warn('no connection to the broker; it is tried again', { error: told });
  }

  #setBlocked(reason: string | undefined): void {
    this.#blocked = reason;
    if (this.trouble === undefined) for (const resume of this.#wantFine) resume();
    this.#log[reason === undefined ? 'info' : 'warn'](
      reason === undefined ? 'the broker takes messages again' : 'the broker takes no messages',
      reason === undefined ? {} : { reason },
    );
  }
}

const advice = {
  authority: 'set amqpCa (AMQP_CA) to the file of the authority that issued the certificate of the broker',
  name: 'the certificate of the broker must name the host of amqpUrl',
  own: 'the broker refuses amqpCertificate (AMQP_CERTIFICATE), or asks for one',
} as const;

/** Connections to the broker at `url`. */
export function brokerAt(
  url: string,
  { clock, log, tls }: { readonly clock: Clock; readonly log: Logger; readonly tls?: TlsFiles | undefined },
): OpenLink {
  const broker = placeOfBroker(url);
  return (name) => BrokerConnection.open({ url, tls, name, clock, log: log.with({ broker, connection: name }) });
}
