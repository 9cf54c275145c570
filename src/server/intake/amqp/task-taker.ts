// Messages of the task queue become tasks, as requests to /schedule do; the result goes back over the broker.
//
//   message ─▶ task placed ─▶ result ─▶ acknowledged
//      ▲          └─ no host ─▶ retry queue, until its delay is over ──┐   attempts left
//      └───────────────────────────────────────────────────────────────┘
//                 └─ no host, the last attempt ─▶ result, event ─▶ dead letters
//
// Every step may happen twice after a crash: the attempt is part of the idempotency key, so one attempt makes one task.

import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import type { Task } from '../../../api/resources/task.ts';
import { ScheduleMessage, type ScheduleResult } from '../../../api/routes/schedule.ts';
import { newId } from '../../../base/ids.ts';
import { isRecord } from '../../../base/is-record.ts';
import { parseStrictJson } from '../../../base/json/strict-json.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { taskAtOnce } from '../../../core/controllers/tasks/task-at-once.ts';
import { refusalOf } from '../../../core/operations/jobs/job-request.ts';
import {
  foundNoHost,
  type ScheduleInput,
  scheduleResultOf,
  scheduleTask,
} from '../../../core/operations/tasks/schedule.ts';
import { eventChange } from '../../../core/state/events.ts';
import type { AuditParts } from '../../audit/trail.ts';
import { type Decider, forProject } from '../../decide.ts';
import { decideFor, permitted } from '../../http/on-behalf.ts';
import type { AmqpSettings } from './amqp-settings.ts';
import type { BrokerMessage } from './broker.ts';
import type { ConfirmedPublisher, Outgoing } from './confirmed-publisher.ts';
import { assertReplyTo, intakeCaller, sha256 } from './job-taker.ts';
import { bytesOf, contentTypeOf } from './message-bytes.ts';
import type { Taker } from './taker.ts';

export interface TaskTakerParts {
  readonly settings: AmqpSettings;
  readonly decider: Decider;
  readonly log: Logger;
  readonly publisher: ConfirmedPublisher;
  /** How long the room of a task is held. */
  readonly ttlMs: number;
  readonly audit?: AuditParts | undefined;
}

const bytesMax = 64 * 1024;
const attemptHeader = 'x-berth-attempt';
export const resultKey = 'task.result';

interface Asked {
  readonly request: ScheduleMessage;
  readonly attempt: number;
  readonly id: string | undefined;
  readonly replyTo: string | undefined;
  readonly message: BrokerMessage;
}

interface Outcome {
  readonly result: ScheduleResult;
  readonly task: Task;
  readonly retries: boolean;
}

export class TaskTaker implements Taker {
  /** A task is decided at once: none waits. */
  readonly waiting = 0;
  readonly #parts: TaskTakerParts;

  constructor(parts: TaskTakerParts) {
    this.#parts = parts;
  }

  stop(): void {}

  refusalOf(error: unknown): { readonly reason: string; readonly message: string } | undefined {
    const refusal = refusalOf(error);
    return refusal?.reason === 'JobRefused' ? { ...refusal, reason: 'TaskRefused' } : refusal;
  }

  async take(message: BrokerMessage): Promise<void> {
    const asked = askedBy(message);
    assertReplyTo(asked.replyTo, this.#parts.settings);
    const outcome = await this.#decide(asked);
    const attemptsMax = this.#parts.settings.retry?.attemptsMax ?? 1;
    if (outcome.retries && asked.attempt < attemptsMax) return this.#tryLater(asked);
    await this.#answer(asked, outcome);
    if (outcome.retries) await this.#giveUp(asked, outcome);
  }

  async #decide(asked: Asked): Promise<Outcome> {
    const { decider, settings, ttlMs } = this.#parts;
    const { project } = settings;
    const { cache } = decider;
    const { task_id: _id, reply_to: _to, ...request } = asked.request;
    const idempotencyKey = asked.id === undefined ? undefined : `amqp:${sha256(asked.id)}:${asked.attempt}`;
    const seed = idempotencyKey ?? newId('task', Math.floor(decider.clock.nowMs()), decider.prng);
    const input: ScheduleInput = {
      project,
      request,
      ttlMs,
      whenFull: 'fail',
      whenOverQuota: 'fail',
      seed,
      idempotencyKey,
    };
    const caller = intakeCaller(this.#parts, 'task', asked.message);
    const schedule = permitted(caller.principal, (snapshot, ctx) =>
      taskAtOnce(snapshot, scheduleTask(snapshot, input, ctx), ctx),
    );
    const { decision } = await decideFor(forProject(project, decider), { caller }, schedule);
    const task = cache.committed('task', decision.key)?.value;
    if (task === undefined) throw new ApiError('Conflict', 'the task of this message has been deleted');
    return { result: scheduleResultOf(task, cache), task, retries: foundNoHost(task) };
  }

  /** The retry queue gives it back to the task queue after its delay. */
  async #tryLater({ message, attempt }: Asked): Promise<void> {
    const { settings, log, decider } = this.#parts;
    const { correlationId, replyTo, messageId } = message;
    const contentType = contentTypeOf(message);
    const fate = await this.#publish(
      {
        exchange: '',
        routingKey: settings.retry?.queue ?? '',
        messageId: messageId ?? newId('msg', Math.floor(decider.clock.nowMs()), decider.prng),
        ...(correlationId === undefined ? {} : { correlationId }),
        ...(replyTo === undefined ? {} : { replyTo }),
        ...(contentType === undefined ? {} : { contentType }),
        headers: { ...message.headers, [attemptHeader]: attempt + 1 },
      },
      bytesOf(message),
    );
    if (fate === 'unrouted') throw new ApiError('Unavailable', 'the retry queue was deleted');
    log.debug('a message found no host; it is tried again', { attempt });
  }

  async #answer({ request, message, replyTo }: Asked, { result, task }: Outcome): Promise<void> {
    const { settings, log } = this.#parts;
    const { id } = task.metadata;
    const body = { task_id: request.task_id ?? id, id, ...result };
    const envelope = {
      messageId: `${id}-${result.status}`,
      contentType: 'application/json',
      ...(message.correlationId === undefined ? {} : { correlationId: message.correlationId }),
      ...(task.metadata.traceParent === undefined ? {} : { headers: { traceparent: task.metadata.traceParent } }),
    };
    const send = (exchange: string, routingKey: string) =>
      this.#publish({ ...envelope, exchange, routingKey }, Buffer.from(JSON.stringify(body)));
    if (replyTo !== undefined && (await send('', replyTo)) === 'confirmed') return;
    const fate = await send(settings.resultExchange, resultKey);
    if (fate === 'unrouted') log.warn('no queue takes the result of a task', { task: id, key: resultKey });
  }

  /** Tells the receivers of events. The message goes to the dead letters because this throws. */
  async #giveUp({ request, attempt, message: sent }: Asked, { result, task }: Outcome): Promise<never> {
    const { decider, settings, log } = this.#parts;
    const why = 'error' in result ? result.error : '';
    const message = `request ${request.task_id ?? 'without task_id'} was given up after ${attempt} attempts: ${why}`;
    await decideFor(
      forProject(settings.project, decider),
      { caller: intakeCaller(this.#parts, 'task', sent) },
      (_snapshot, ctx) => ({
        plan: { changes: [eventChange(task, { type: 'Warning', reason: 'ScheduleGivenUp', message }, ctx)] },
      }),
    );
    log.error('a request of the task queue was given up', { task: request.task_id, attempts: attempt, why });
    throw new ApiError('Conflict', message, { details: { reason: 'NoAvailableNodes' } });
  }

  /** A broker that does not take it is no fault of the message: that goes back with its channel. */
  async #publish(envelope: Outgoing, body: Buffer): Promise<'confirmed' | 'unrouted'> {
    try {
      return await this.#parts.publisher.publish(envelope, body);
    } catch (cause) {
      throw new ApiError('Unavailable', `the broker does not take what follows: ${describeError(cause)}`, { cause });
    }
  }
}

/** Throws `InvalidRequest` with a reason for the dead letter. */
function askedBy(message: BrokerMessage): Asked {
  const bytes = bytesOf(message);
  if (bytes.length > bytesMax)
    throw refused('TooLarge', `the message has ${bytes.length} bytes; at most ${bytesMax} are read`);
  if (!['', 'identity', 'utf-8', 'utf8'].includes((message.contentEncoding ?? '').toLowerCase()))
    throw refused('UnsupportedEncoding', 'the message is compressed or encoded; send plain JSON');
  const json = parseStrictJson(bytes);
  if (!json.ok) throw refused(json.reason, `the message is refused: ${json.message}`);
  if (!isRecord(json.value)) throw refused('InvalidRequest', 'the message must be a JSON object', 'body');
  try {
    const request = parse(ScheduleMessage, json.value);
    const told: unknown = message.headers?.[attemptHeader];
    const attempt = typeof told === 'number' && Number.isSafeInteger(told) && told > 0 ? told : 1;
    const replyTo = request.reply_to ?? message.replyTo;
    return { request, attempt, id: request.task_id ?? message.messageId, replyTo, message };
  } catch (error) {
    throw error instanceof ApiError ? refused('InvalidRequest', error.message, error.field) : error;
  }
}

function refused(reason: string, message: string, field = 'body'): ApiError {
  return new ApiError('InvalidRequest', message, { field, details: { reason } });
}
