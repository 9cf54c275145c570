// The placement service in terms of tasks: what a request asks for, and what its sender reads of the task. A bounded table
// of specs is kept, and cleared when it is full; it changes no answer.

import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import type { Host } from '../../../api/resources/host.ts';
import { type Task, TaskSpec } from '../../../api/resources/task.ts';
import type { ScheduleRequest, ScheduleResult } from '../../../api/routes/schedule.ts';
import { fingerprint } from '../../../base/hash.ts';
import { conditionOf } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { createRefusedTask, createTask } from '../task.ts';
import { type RequestFields, withRequestField } from './request-field.ts';

export interface ScheduleInput {
  readonly project: string;
  readonly request: ScheduleRequest;
  /** How long the room is held. */
  readonly ttlMs: number;
  /** While no host has room. */
  readonly whenFull: 'fail' | 'wait';
  /** Above the quota of its project: `fail` makes a task that has failed, so that a repetition fails, too. Default: it throws. */
  readonly whenOverQuota?: 'fail';
  /** Equal for a repeated request: the name of the task is made of it, and is part of what must be the same. */
  readonly seed: string;
  readonly idempotencyKey?: string | undefined;
}

/** Throws what creating a task throws, naming the fields of the request. */
export function scheduleTask(snapshot: Snapshot, input: ScheduleInput, ctx: Context): Decision {
  const { project, seed, idempotencyKey } = input;
  const name = `schedule-${fingerprint(seed)}`;
  const key = idempotencyKey === undefined ? {} : { idempotencyKey };
  try {
    const wanted = { project, name, labels: {}, spec: taskSpecOf(input), ...key };
    try {
      return createTask(snapshot, wanted, ctx);
    } catch (error) {
      if (input.whenOverQuota !== 'fail' || !(error instanceof ApiError) || error.code !== 'QuotaExceeded') throw error;
      return createRefusedTask(snapshot, wanted, { reason: error.code, message: error.message }, ctx);
    }
  } catch (error) {
    throw withRequestField(error, scheduleFields);
  }
}

/** Specs of requests, by what they ask for. Equal requests share one, so that caches keyed by the spec work once. */
const specs = new Map<string, TaskSpec>();
const specsMax = 256;

function taskSpecOf({ request, ttlMs, whenFull }: ScheduleInput): TaskSpec {
  const { requested_cpu: cpus, requested_memory: memoryMiB, requested_pool: pool, dedicated } = request;
  const key = `${cpus} ${memoryMiB} ${dedicated} ${ttlMs} ${whenFull} ${pool ?? ''}`;
  const known = specs.get(key);
  if (known !== undefined) return known;
  const placement = { ...(pool === undefined ? {} : { pool }), ...(dedicated ? { dedicated } : {}) };
  const spec = parse(TaskSpec, { cpus, memoryMiB, ttlMs, whenFull, placement });
  if (specs.size >= specsMax) specs.clear();
  specs.set(key, spec);
  return spec;
}

export const scheduleFields: RequestFields = {
  'spec.cpus': 'requested_cpu',
  'spec.memoryMiB': 'requested_memory',
  'spec.placement.pool': 'requested_pool',
  'spec.placement.dedicated': 'dedicated',
};

/** Whether no host had room; its host was not removed. */
export function foundNoHost({ status: { phase, host } }: Task): boolean {
  return phase === 'Failed' && host === undefined;
}

/** What became of the request that made the task. */
export function scheduleResultOf(task: Task, snapshot: Pick<Snapshot, 'get'>): ScheduleResult {
  const { spec, status } = task;
  const { phase, host: name = '', assigned = {}, heldUntilMs = 0 } = status;
  const why = conditionOf(status.conditions, 'Scheduled')?.message ?? '';
  switch (phase) {
    case 'Pending':
      return { status: 'processing' };
    case 'Failed':
      // A host that is removed takes its room with it.
      return { status: 'failed', error: foundNoHost(task) ? noNodes(why) : `the room is released: ${why}` };
    case 'Expired':
      return { status: 'failed', error: `the room is released: ${why}` };
    case 'Placed': {
      const host = snapshot.get('host', keys.host(name))?.value;
      return {
        status: 'completed',
        result: {
          name,
          ip: addressOf(host),
          pool: host?.spec.pool ?? null,
          cpu: assigned['VCPU'] ?? spec.cpus ?? 0,
          memory: assigned['MEMORY_MB'] ?? spec.memoryMiB ?? 0,
          held_until: new Date(heldUntilMs).toISOString(),
        },
      };
    }
  }
}

function noNodes(why: string): string {
  return `No available nodes: ${why}`;
}

function addressOf(host: Host | undefined): string | null {
  return host?.status.outside?.ip ?? host?.metadata.labels['ip'] ?? null;
}
