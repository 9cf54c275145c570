// What every broker behind broker.ts must do; the false one of the simulator as RabbitMQ.

import { expect, it } from 'vitest';
import { type BrokerChannel, type BrokerLink, type BrokerMessage, replyCodeOf } from './broker.ts';

interface BrokerUnderTest {
  /** A new connection. */
  link(): BrokerLink;
  /** Resolves when the broker had time for more. */
  pass(): Promise<void>;
}

/** `rest` runs the broker for as long as `work` takes. */
export function brokerConformance(brokerOf: () => BrokerUnderTest, rest: <T>(work: Promise<T>) => Promise<T>): void {
  let queues = 0;
  const scene = async () => {
    const { link } = brokerOf();
    const queue = `conformance-${++queues}`;
    const connection = link();
    const channel = await connection.acquire();
    await channel.confirmSelect();
    await channel.queueDeclare({ queue, durable: true });
    const send = (text: string) =>
      channel.basicPublish({ exchange: '', routingKey: queue, messageId: text, durable: true }, Buffer.from(text));
    return { connection, channel, queue, send };
  };
  const says = (name: string, run: () => Promise<void>) => it(name, () => rest(run()), 60_000);

  says('it connects, and has no trouble then', async () => {
    const { connection } = await scene();
    expect(await connection.first).toBeUndefined();
    expect(connection.trouble).toBeUndefined();
    await connection.close();
  });

  says('messages come in order, as bytes, with their properties', async () => {
    const { channel, queue, send, connection } = await scene();
    await send('one');
    await send('two');
    const seen = await consumed(channel, queue, 2);
    expect(seen).toMatchObject([
      { body: Buffer.from('one'), messageId: 'one', deliveryTag: 1, redelivered: false, routingKey: queue },
      { body: Buffer.from('two'), messageId: 'two', deliveryTag: 2, redelivered: false, exchange: '' },
    ]);
    await connection.close();
  });

  says('what a closed channel has not acknowledged comes again', async () => {
    const { channel, queue, send, connection } = await scene();
    await send('one');
    await send('two');
    const other = await connection.acquire();
    await consumed(other, queue, 2);
    other.basicAck({ deliveryTag: 1 });
    await other.close();
    expect(await consumed(channel, queue, 1)).toMatchObject([{ messageId: 'two', redelivered: true }]);
    await connection.close();
  });

  says('the same is true of a connection', async () => {
    const { channel, queue, send, connection } = await scene();
    await send('one');
    const other = brokerOf().link();
    await consumed(await other.acquire(), queue, 1);
    await other.close();
    expect(await consumed(channel, queue, 1)).toMatchObject([{ messageId: 'one', redelivered: true }]);
    await connection.close();
  });

  says('a consumer has no more than its limit unacknowledged; `multiple` acknowledges all before', async () => {
    const { channel, queue, send, connection } = await scene();
    for (const text of ['1', '2', '3', '4']) await send(text);
    await channel.basicQos({ prefetchCount: 2 });
    const seen: BrokerMessage[] = [];
    await channel.basicConsume({ queue }, (message) => void seen.push(message));
    await until(() => seen.length === 2);
    expect((await channel.queueDeclare({ queue, passive: true })).messageCount).toBe(2);
    channel.basicAck({ deliveryTag: 2, multiple: true });
    await until(() => seen.length === 4);
    await connection.close();
  });

  says('a cancelled consumer gets no more', async () => {
    const { channel, queue, send, connection } = await scene();
    const seen: BrokerMessage[] = [];
    const { consumerTag } = await channel.basicConsume({ queue }, (message) => void seen.push(message));
    await channel.basicCancel({ consumerTag });
    await send('one');
    expect(await channel.queueDeclare({ queue, passive: true })).toMatchObject({ messageCount: 1, consumerCount: 0 });
    expect(seen).toEqual([]);
    await connection.close();
  });

  says('an acknowledgement that is not due closes the channel', async () => {
    const { connection } = await scene();
    const channel = await connection.acquire();
    const closed = new Promise<void>((resolve) => channel.on('close', resolve));
    channel.basicAck({ deliveryTag: 7 });
    await closed;
    expect(channel.active).toBe(false);
    expect(() => channel.basicAck({ deliveryTag: 8 })).toThrow(/closed/);
    await connection.close();
  });

  says('a message that no queue wants comes back, and is confirmed', async () => {
    const { channel, connection } = await scene();
    const returned: unknown[] = [];
    channel.on('basic.return', (message) => returned.push(message.messageId));
    const envelope = { exchange: '', routingKey: 'nowhere', messageId: 'lost', mandatory: true, durable: true };
    await channel.basicPublish(envelope, Buffer.from('lost'));
    await new Promise<void>((resolve) => connection.afterTurn(resolve));
    expect(returned).toEqual(['lost']);
    await connection.close();
  });

  says('exchanges route by key or to all', async () => {
    const { channel, queue, connection } = await scene();
    await channel.exchangeDeclare({ exchange: `${queue}.direct`, type: 'direct', durable: true });
    await channel.exchangeDeclare({ exchange: `${queue}.fanout`, type: 'fanout', durable: true });
    await channel.queueBind({ queue, exchange: `${queue}.direct`, routingKey: 'key' });
    await channel.queueBind({ queue, exchange: `${queue}.fanout`, routingKey: '' });
    for (const [kind, routingKey] of [
      ['direct', 'key'],
      ['direct', 'other'],
      ['fanout', 'any'],
    ])
      await channel.basicPublish({ exchange: `${queue}.${kind}`, routingKey: routingKey ?? '' }, Buffer.from('x'));
    expect(await channel.queueDeclare({ queue, passive: true })).toMatchObject({ messageCount: 2 });
    await connection.close();
  });

  says('what does not exist closes the channel, and what is otherwise is refused', async () => {
    const { queue, connection } = await scene();
    const codeOf = async (run: (channel: BrokerChannel) => Promise<unknown>): Promise<string | undefined> => {
      const channel = await connection.acquire();
      const code = await run(channel).then(() => undefined, replyCodeOf);
      expect(channel.active).toBe(false);
      return code;
    };
    expect(await codeOf((channel) => channel.queueDeclare({ queue: 'nowhere', passive: true }))).toBe('NOT_FOUND');
    expect(await codeOf((channel) => channel.exchangeDeclare({ exchange: 'nowhere', passive: true }))).toBe(
      'NOT_FOUND',
    );
    const others = { queue, durable: true, arguments: { 'x-dead-letter-exchange': 'other' } };
    expect(await codeOf((channel) => channel.queueDeclare(others))).toBe('PRECONDITION_FAILED');
    await connection.close();
  });

  says('a deleted queue cancels its consumers', async () => {
    const { channel, queue, connection } = await scene();
    const consumer = await connection.acquire();
    const cancelled = new Promise<void>((resolve) => consumer.on('basic.cancel', resolve));
    await consumer.basicConsume({ queue }, () => {});
    await channel.queueDelete({ queue });
    await cancelled;
    await connection.close();
  });

  says('messages can be taken one by one', async () => {
    const { channel, queue, send, connection } = await scene();
    await send('one');
    await send('two');
    expect(await channel.basicGet({ queue })).toMatchObject({ messageId: 'one' });
    expect(await channel.basicGet({ queue, noAck: true })).toMatchObject({ messageId: 'two' });
    expect(await channel.basicGet({ queue })).toBeUndefined();
    await connection.close();
  });

  async function consumed(channel: BrokerChannel, queue: string, count: number): Promise<BrokerMessage[]> {
    const seen: BrokerMessage[] = [];
    await channel.basicConsume({ queue }, (message) => void seen.push(message));
    await until(() => seen.length >= count);
    return seen;
  }

  async function until(holds: () => boolean): Promise<void> {
    while (!holds()) await brokerOf().pass();
  }
}
