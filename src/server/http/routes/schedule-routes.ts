// `/schedule`: tasks, in the words of a placement service for bare-metal hosts.

import type { Host } from '../../../api/resources/host.ts';
import type { Task } from '../../../api/resources/task.ts';
import { type ScheduleRequest, type ScheduleResult, scheduleRoutes as routes } from '../../../api/routes/schedule.ts';
import { assertMay, assertMayOn, notFound } from '../../../core/access/may.ts';
import { taskAtOnce } from '../../../core/controllers/task-at-once.ts';
import { createTask, releaseTask } from '../../../core/operations/task.ts';
import { conditionOf } from '../../../core/state/conditions.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Entry, Snapshot } from '../../../core/state/snapshot.ts';
import { parse } from '../../../api/parse.ts';
import { resourceDefinitions } from '../../../api/resources/index.ts';
import { fingerprint } from '../../../base/hash.ts';
import { newId } from '../../../base/ids.ts';
import { type Decider, forProject } from '../../decide.ts';
import type { Caller } from '../caller.ts';
import { decideFor, permitted } from '../on-behalf.ts';
import type { Route } from '../route.ts';
import { bind } from './bind.ts';
import { findTask, idempotencyKeyOf } from './resource-routes.ts';

/** After this many conflicts with other servers, the task controller places the task. */
const atOnceAttempts = 3;

interface ScheduleParts {
  readonly decider: Decider;
  /** How long room is held. */
  readonly ttlMs: number;
}

export function scheduleRoutes({ decider, ttlMs }: ScheduleParts): Route[] {
  const { cache } = decider;
  const resultOf = (caller: Caller, name: string, project: string) => {
    const { value } = taskOf(decider, caller, { name, project });
    return { status: 200, json: scheduleResultOf(value, cache) };
  };
  return [
    bind(routes.create, async ({ query: { project }, body }, request) => {
      const { principal } = request.caller;
      const question = { verb: 'create', resource: 'task', project } as const;
      assertMay(cache, principal, question);
      const { idempotencyKey } = idempotencyKeyOf(request);
      const name = nameOf(idempotencyKey ?? newId('task', decider.clock.nowMs(), decider.prng));
      const key = idempotencyKey === undefined ? {} : { idempotencyKey };
      const input = { project, name, labels: {}, spec: taskSpecOf(body, ttlMs), ...key };
      const create = permitted(principal, (snapshot, ctx, attempt) => {
        assertMay(snapshot, principal, question);
        const made = createTask(snapshot, input, ctx);
        return attempt < atOnceAttempts ? taskAtOnce(snapshot, made, ctx) : made;
      });
      const { decision } = await decideFor(forProject(project, decider), request, create);
      const task = cache.get('task', decision.key)?.value;
      if (task === undefined) throw notFound('task', name);
      return { status: 202, json: { task_id: task.metadata.id } };
    }),
    bind(routes.result, ({ params, query }, { caller }) => resultOf(caller, params.task, query.project)),
    bind(routes.show, ({ params, query }, { caller }) => resultOf(caller, params.task, query.project)),
    bind(routes.release, async ({ params, query }, request) => {
      const { principal } = request.caller;
      const { key, value } = taskOf(decider, request.caller, { name: params.task, project: query.project });
      assertMayOn(cache, principal, 'delete', value);
      const { id, project } = value.metadata;
      await decideFor(
        forProject(project, decider),
        request,
        permitted(principal, (snapshot, ctx) => {
          const now = snapshot.get('task', key)?.value;
          if (now) assertMayOn(snapshot, principal, 'delete', now);
          return releaseTask(snapshot, { key, id }, ctx);
        }),
      );
      return { status: 200, json: { status: 'released' } };
    }),
  ];
}

/** The same for a repeated request: its name is part of what must be the same. */
function nameOf(text: string): string {
  return `schedule-${fingerprint(text)}`;
}

/** By id only: names are of people. */
function taskOf(
  { cache }: Decider,
  caller: Caller,
  { name, project }: { readonly name: string; readonly project: string },
): Entry<Task> {
  if (!name.startsWith('task_')) throw notFound('task', name);
  return findTask(cache, caller, name, project);
}

/** The request as a task that does not wait for room. */
export function taskSpecOf(request: ScheduleRequest, ttlMs: number) {
  const { requested_cpu: cpus, requested_memory: memoryMiB, requested_pool: pool, dedicated } = request;
  return parse(resourceDefinitions.task.spec, {
    cpus,
    memoryMiB,
    ttlMs,
    whenFull: 'fail',
    placement: { ...(pool === undefined ? {} : { pool }), ...(dedicated ? { dedicated } : {}) },
  });
}

/** What became of the request that made the task. */
export function scheduleResultOf({ spec, status }: Task, snapshot: Pick<Snapshot, 'get'>): ScheduleResult {
  const { phase, host: name = '', assigned = {}, heldUntilMs = 0 } = status;
  const why = conditionOf(status.conditions, 'Scheduled')?.message ?? '';
  switch (phase) {
    case 'Pending':
      return { status: 'processing' };
    case 'Failed':
      // A host that is removed takes its room with it.
      return { status: 'failed', error: name === '' ? `No available nodes: ${why}` : `the room is released: ${why}` };
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

function addressOf(host: Host | undefined): string | null {
  return host?.metadata.labels['ip'] ?? null;
}
