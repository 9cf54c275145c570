// Messages of the job queue become jobs.

import { traceParentIn } from '../../../base/tracing/trace-parent.ts';
import { createHash } from 'node:crypto';
import { newId } from '../../../base/ids.ts';
import type { Logger } from '../../../base/log.ts';
import { ApiError } from '../../../api/errors.ts';
import { acceptJobRequest, readJobRequest, refusalOf } from '../../../core/operations/jobs/job-request.ts';
import { type AuditParts, openTrail } from '../../audit/trail.ts';
import { type Decider, forProject } from '../../decide.ts';
import type { Caller } from '../../http/caller.ts';
import { decideFor, permitted } from '../../http/on-behalf.ts';
import type { AmqpSettings } from './amqp-settings.ts';
import type { BrokerMessage } from './broker.ts';
import { bytesOf } from './message-bytes.ts';
import type { Taker } from './taker.ts';
import { WaitingJobs } from './waiting-jobs.ts';

interface JobTakerParts {
  readonly settings: AmqpSettings;
  readonly decider: Decider;
  readonly log: Logger;
  readonly audit?: AuditParts | undefined;
}

export class JobTaker implements Taker {
  readonly refusalOf = refusalOf;
  readonly #parts: JobTakerParts;
  readonly #waiting: WaitingJobs;

  constructor(parts: JobTakerParts, changed: () => void) {
    this.#parts = parts;
    const { decider, settings } = parts;
    this.#waiting = new WaitingJobs({ cache: decider.cache, project: settings.project, changed });
  }

  get waiting(): number {
    return this.#waiting.count;
  }

  stop(): void {
    this.#waiting.stop();
  }

  async take(message: BrokerMessage): Promise<void> {
    const { decider, settings, log } = this.#parts;
    const { replyTo, correlationId, contentEncoding } = message;
    const read = readJobRequest(bytesOf(message), { hash: sha256, contentEncoding });
    assertReplyTo(replyTo, settings);
    const input = {
      ...read,
      project: settings.project,
      ...(replyTo ? { replyTo } : {}),
      ...(correlationId ? { correlationId } : {}),
    };
    const caller = intakeCaller(this.#parts, 'job', message);
    const accept = permitted(caller.principal, (snapshot, ctx) => acceptJobRequest(snapshot, input, ctx));
    const { decision } = await decideFor(forProject(settings.project, decider), { caller }, accept);
    log.debug(decision.changed ? 'a message made a job' : 'a message was a repetition', {
      request: read.request.request_id,
    });
  }
}

/** An answer into the intake would come back as a request. */
export function assertReplyTo(replyTo: string | undefined, { queue, deadLetterQueue, retry }: AmqpSettings): void {
  if (replyTo === undefined || ![queue, deadLetterQueue, retry?.queue].includes(replyTo)) return;
  throw new ApiError('InvalidRequest', 'reply_to names a queue of this intake; name a queue of your own', {
    field: 'reply_to',
    details: { reason: 'ReplyToRefused' },
  });
}

/** Who asks for what a message asks for. */
export function intakeCaller(
  { decider, settings, audit }: JobTakerParts,
  kind: 'job' | 'task',
  { headers }: Pick<BrokerMessage, 'headers'>,
): Caller {
  const { project } = settings;
  const requestId = newId('req', Math.floor(decider.clock.nowMs()), decider.prng);
  const caller: Caller = {
    principal: { kind: 'intake', name: 'amqp', project },
    requestId,
    address: '',
    face: 'amqp',
    traceParent: traceParentIn(headers?.['traceparent']),
  };
  if (audit) openTrail(audit, caller, { verb: 'create', kind, project });
  return caller;
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
