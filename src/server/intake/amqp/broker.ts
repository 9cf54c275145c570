// What the intake, the results and the dead letters need of a broker: rabbitmq-client has it (broker-connection.ts), and so
// has the false broker of the simulator. Both pass conformance.ts. Errors have the broker's reply code in `code`.

interface MessageProperties {
  readonly messageId?: string;
  readonly correlationId?: string;
  readonly replyTo?: string;
  readonly type?: string;
  readonly appId?: string;
  readonly priority?: number;
  /** In seconds. */
  readonly timestamp?: number;
  readonly contentType?: string;
  readonly contentEncoding?: string;
  readonly headers?: Readonly<Record<string, unknown>>;
}

export interface BrokerMessage extends MessageProperties {
  /** Counts the deliveries of a channel, from 1. */
  readonly deliveryTag: number;
  readonly exchange: string;
  readonly routingKey: string;
  readonly redelivered: boolean;
  readonly body: unknown;
}

export interface Envelope extends MessageProperties {
  readonly exchange: string;
  readonly routingKey: string;
  /** It comes back when no queue takes it. */
  readonly mandatory?: boolean;
  /** It survives the broker. */
  readonly durable?: boolean;
}

export interface BrokerChannel {
  readonly active: boolean;
  on(event: 'close' | 'basic.cancel', listener: () => void): unknown;
  on(
    event: 'basic.return',
    listener: (message: Pick<BrokerMessage, 'exchange' | 'routingKey' | 'messageId'>) => void,
  ): unknown;
  basicQos(limit: { readonly prefetchCount: number }): Promise<void>;
  basicConsume(
    from: { readonly queue: string },
    take: (message: BrokerMessage) => void,
  ): Promise<{ readonly consumerTag: string }>;
  /** Messages may come until it resolves. */
  basicCancel(consumer: { readonly consumerTag: string }): Promise<unknown>;
  /** Throws on a closed channel. `multiple`: also all before it. */
  basicAck(what: { readonly deliveryTag: number; readonly multiple?: boolean }): void;
  basicGet(from: { readonly queue: string; readonly noAck?: boolean }): Promise<BrokerMessage | undefined>;
  confirmSelect(): Promise<void>;
  /** Resolves when the broker has confirmed it. One that no queue takes is confirmed, too, and comes back before or just after. */
  basicPublish(envelope: Envelope, body: Buffer): Promise<void>;
  exchangeDeclare(what: {
    readonly exchange: string;
    readonly type?: 'direct' | 'fanout' | 'topic';
    readonly durable?: boolean;
    readonly passive?: boolean;
  }): Promise<unknown>;
  queueDeclare(what: {
    readonly queue: string;
    readonly durable?: boolean;
    readonly passive?: boolean;
    readonly arguments?: Readonly<Record<string, string | number>>;
  }): Promise<{ readonly messageCount: number; readonly consumerCount: number }>;
  queueDelete(what: { readonly queue: string }): Promise<unknown>;
  queueBind(what: { readonly queue: string; readonly exchange: string; readonly routingKey: string }): Promise<unknown>;
  /** What is not acknowledged goes back into its queue. */
  close(): Promise<void>;
}

/** One connection, which connects again by itself. */
export interface BrokerLink {
  /** How the first attempt to connect ended; undefined: it succeeded. */
  readonly first: Promise<Error | undefined>;
  /** Why nothing can be sent or received; undefined: it can. */
  readonly trouble: string | undefined;
  /** Resolves when it can send and receive, at the latest after this time: true if it can. */
  fine(withinMs: number): Promise<boolean>;
  /** A new channel whose messages come as bytes. Rejects when there is no connection within 20 s. */
  acquire(): Promise<BrokerChannel>;
  /** Calls `run` when all that the broker said together with the last thing heard was heard. */
  afterTurn(run: () => void): void;
  /** What is under way may fail. */
  close(): Promise<void>;
}

/** Begins to connect, and does not wait for it. The name is for the broker's own lists. */
export type OpenLink = (name: string) => BrokerLink;

/** An error with one of the broker's reply codes: `ACCESS_REFUSED`. */
export function replyCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
