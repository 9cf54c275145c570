// Starts the intake from a broker, if one is configured; nothing of its library is loaded else.

import type { Logger } from '../../base/log.ts';
import type { ServerConfig } from '../config.ts';
import type { Outside } from '../outside.ts';
import type { Server } from '../server.ts';
import type { Amqp } from './amqp/amqp.ts';
import { amqpSettingsOf, taskSettingsOf } from './amqp/amqp-settings.ts';
import type { TaskQueue } from './amqp/task-queue.ts';

/** Throws `InvalidRequest` naming the variable when the broker refuses; one that is not reached is tried again. */
export async function startAmqp(
  config: ServerConfig,
  parts: { readonly plane: Server; readonly outside: Outside; readonly log: Logger },
): Promise<Amqp | undefined> {
  const { plane, outside } = parts;
  const settings = amqpSettingsOf(config, plane.decider.policy.maxConcurrency);
  if (settings === undefined) return undefined;
  const [{ Amqp }, { brokerAt }] = await Promise.all([import('./amqp/amqp.ts'), import('./amqp/broker-connection.ts')]);
  const log = parts.log.with({ part: 'amqp' });
  const { decider, leads, audit } = plane;
  const open = brokerAt(settings.url, { clock: decider.clock, log, tls: settings.tls });
  const amqp = await Amqp.start({ settings, decider, log, leads, open, audit: audit?.parts });
  outside.add(amqp);
  return amqp;
}

/** The same for requests to /schedule. */
export async function startTaskQueue(
  config: ServerConfig,
  parts: { readonly plane: Server; readonly outside: Outside; readonly log: Logger },
): Promise<TaskQueue | undefined> {
  const { plane, outside } = parts;
  const settings = taskSettingsOf(config);
  if (settings === undefined) return undefined;
  const [{ TaskQueue }, { brokerAt }] = await Promise.all([
    import('./amqp/task-queue.ts'),
    import('./amqp/broker-connection.ts'),
  ]);
  const log = parts.log.with({ part: 'task-queue' });
  const { decider, audit } = plane;
  const open = brokerAt(settings.url, { clock: decider.clock, log, tls: settings.tls });
  const { scheduleTtlMs: ttlMs } = config;
  const queue = await TaskQueue.start({ settings, decider, log, ttlMs, open, audit: audit?.parts });
  outside.add(queue);
  return queue;
}
