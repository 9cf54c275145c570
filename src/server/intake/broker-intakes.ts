// Broker intakes: what takes messages from brokers, of those that are configured. Without one, their library is not loaded.

import type { Logger } from '../../base/log.ts';
import type { ServerConfig } from '../config.ts';
import type { Outside } from '../outside.ts';
import type { Server } from '../server.ts';
import type { Amqp } from './amqp/amqp.ts';
import { amqpSettingsOf, taskSettingsOf } from './amqp/amqp-settings.ts';
import type { TaskQueue } from './amqp/task-queue.ts';

interface IntakeParts {
  readonly plane: Server;
  readonly outside: Outside;
  readonly log: Logger;
}

export class BrokerIntakes {
  #jobs: Amqp | undefined;
  #tasks: TaskQueue | undefined;

  /** Throws `InvalidRequest` naming the variable when a broker refuses; one that is not reached is tried again. */
  async start(config: ServerConfig, parts: IntakeParts): Promise<void> {
    this.#jobs = await startJobs(config, parts);
    this.#tasks = await startTasks(config, parts);
  }

  /** Takes no further message; results are still sent. */
  async stopIntake(): Promise<void> {
    await Promise.all([this.#jobs?.stopIntake(), this.#tasks?.stopIntake()]);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#jobs?.stop(), this.#tasks?.stop()]);
  }
}

/** Messages that become jobs. */
async function startJobs(config: ServerConfig, parts: IntakeParts): Promise<Amqp | undefined> {
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

/** Messages that are requests to /schedule. */
async function startTasks(config: ServerConfig, parts: IntakeParts): Promise<TaskQueue | undefined> {
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
