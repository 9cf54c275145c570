// `/schedule`: tasks, in the words of a placement service for bare-metal hosts.

import type { Task } from '../../../../api/resources/task.ts';
import { scheduleRoutes as routes } from '../../../../api/routes/schedule.ts';
import { assertMay, assertMayOn, notFound } from '../../../../core/access/may.ts';
import { taskAtOnce } from '../../../../core/controllers/tasks/task-at-once.ts';
import { releaseTask } from '../../../../core/operations/task.ts';
import { withRequestField } from '../../../../core/operations/tasks/request-field.ts';
import { scheduleFields, scheduleResultOf, scheduleTask } from '../../../../core/operations/tasks/schedule.ts';
import type { Entry } from '../../../../core/state/snapshot.ts';
import { newId } from '../../../../base/ids.ts';
import { type Decider, forProject } from '../../../decide.ts';
import type { Caller } from '../../caller.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { findOne } from '../find-resource.ts';
import { idempotencyKeyOf } from '../sent-resource.ts';

/** After this many conflicts with other servers, the task controller places the task. */
const atOnceAttempts = 3;

interface ScheduleParts {
  readonly decider: Decider;
  /** How long room is held. */
  readonly ttlMs: number;
  readonly whenFull: 'fail' | 'wait';
}

export function scheduleRoutes({ decider, ttlMs, whenFull }: ScheduleParts): Route[] {
  const { cache } = decider;
  const resultOf = (caller: Caller, name: string, project: string) => {
    const { value } = taskOf(decider, caller, { name, project });
    return { status: 200, json: scheduleResultOf(value, cache) };
  };
  return [
    bind(routes.create, async ({ query, body }, request) => {
      const { principal } = request.caller;
      const project = projectOf(query, request.caller);
      const question = { verb: 'create', resource: 'task', project } as const;
      assertMay(cache, principal, question);
      const { idempotencyKey } = idempotencyKeyOf(request);
      const seed = idempotencyKey ?? newId('task', decider.clock.nowMs(), decider.prng);
      const input = { project, request: body, ttlMs, whenFull, seed, idempotencyKey };
      const create = permitted(principal, (snapshot, ctx, attempt) => {
        assertMay(snapshot, principal, question);
        const made = scheduleTask(snapshot, input, ctx);
        return attempt < atOnceAttempts ? taskAtOnce(snapshot, made, ctx) : made;
      });
      const { decision } = await decideFor(forProject(project, decider), request, create).catch((error: unknown) => {
        throw withRequestField(error, scheduleFields);
      });
      const task = cache.get('task', decision.key)?.value;
      if (task === undefined) throw notFound('task', decision.key);
      return { status: 202, json: { task_id: task.metadata.id } };
    }),
    bind(routes.result, ({ params, query }, { caller }) => resultOf(caller, params.task, projectOf(query, caller))),
    bind(routes.show, ({ params, query }, { caller }) => resultOf(caller, params.task, projectOf(query, caller))),
    bind(routes.release, async ({ params, query }, request) => {
      const { principal } = request.caller;
      const { key, value } = taskOf(decider, request.caller, {
        name: params.task,
        project: projectOf(query, request.caller),
      });
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

/** A caller without a token belongs to one project. */
function projectOf({ project }: { readonly project?: string }, { principal }: Caller): string {
  return project ?? (principal.kind === 'intake' ? principal.project : 'default');
}

/** By id only: names are of people. */
function taskOf(
  { cache }: Decider,
  caller: Caller,
  { name, project }: { readonly name: string; readonly project: string },
): Entry<Task> {
  if (!name.startsWith('task_')) throw notFound('task', name);
  return findOne('task', cache, { caller, name, project });
}
