// Publishes one JobRequest, and waits until the broker has stored it in a queue.

import { Connection } from 'rabbitmq-client';
import { ApiError } from '../../api/errors.ts';
import { JobRequest } from '../../api/job-request.ts';
import { parse } from '../../api/parse.ts';
import { describeError } from '../../base/log.ts';
import { system } from '../../base/system.ts';
import type { TlsFiles } from '../../base/tls/tls-files.ts';

export interface RequestToSend {
  readonly request_id: string;
  readonly [field: string]: string;
}

export interface BrokerToUse {
  readonly url: string;
  /** For `amqps:`. */
  readonly tls?: TlsFiles;
  readonly exchange: string;
  readonly routingKey: string;
}

/** Throws `InvalidRequest` for a request that would become a dead letter, `Unavailable` when the broker does not take it. */
export async function publishRequest(
  request: RequestToSend,
  { url, tls, exchange, routingKey }: BrokerToUse,
): Promise<void> {
  parse(JobRequest, { ...request });
  const connection = new Connection({
    ...{ url, connectionName: 'berth enqueue', connectionTimeout: 10_000 },
    ...(tls === undefined ? {} : { tls: { ...tls } }),
  });
  try {
    const connected = new Promise<void>((resolve, reject) => {
      connection.on('error', reject);
      connection.on('connection', resolve);
    });
    await connected; // throws at the first failure
    const channel = await connection.acquire();
    let returned = false;
    channel.on('basic.return', () => (returned = true));
    await channel.confirmSelect();
    await channel.basicPublish(
      {
        exchange,
        routingKey,
        mandatory: true,
        durable: true,
        contentType: 'application/json',
        messageId: request.request_id,
      },
      Buffer.from(JSON.stringify(request)),
    );
    await system.turn(); // the library tells of a returned message a turn later
    if (returned)
      throw new ApiError('Unavailable', `no queue takes messages of exchange "${exchange}" with key "${routingKey}"`);
    await channel.close();
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError('Unavailable', `the broker does not take it: ${describeError(error)}`, { cause: error });
  } finally {
    connection.unsafeDestroy();
  }
}
