// What is asked for in a query string: like an instance, or as OpenStack Placement is asked.

import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { AskSpec } from '../../../api/resources/task.ts';
import { capacityRoutes } from '../../../api/routes/capacity.ts';
import { assertAskable } from '../../../core/operations/askable.ts';
import { demandOf, queryOf } from '../../../core/scheduler/demand.ts';
import { type Request, withKeys, requestOf } from '../../../core/scheduler/request.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import type { QueryOf } from './bind.ts';
import type { Query } from '../route.ts';

export interface Asked {
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: AskSpec;
}

type AskedQuery = Omit<QueryOf<typeof capacityRoutes.candidates>, 'limit'>;

/** Throws `InvalidRequest`, naming the parameter. `raw`: the same query, for what goes on to OpenStack Placement's words. */
export function askedBy(query: AskedQuery, raw: Query): Asked {
  const { project, size, image, pool, driver, profile, cpus, memoryMiB, diskGiB, gpus, hostLabels } = query;
  const placementNames = [...raw.names()].filter((name) => capacityRoutes.candidates.moreQuery.names.test(name));
  const text = new URLSearchParams(
    placementNames.flatMap((name) => raw.all(name).map((value): [string, string] => [name, value])),
  ).toString();
  const placement = given({
    query: text === '' ? undefined : text,
    ...{ pool, driver, profile },
    hostLabels: hostLabels === undefined ? undefined : labelsOf(hostLabels),
  });
  const spec = given({
    placement,
    ...{ size, image, cpus, memoryMiB, diskGiB },
    gpus: gpus === undefined ? undefined : { count: gpus },
  });
  return { project, labels: {}, spec: parse(AskSpec, spec) };
}

/** Without what was not said. */
function given(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/**
 * As a request. Who asks with a resource query and says nothing else of the size gets what the query says, without the defaults of an
 * instance. Throws `InvalidRequest` for what cannot be meant.
 */
export function requestFor(snapshot: Snapshot, { project, labels, spec }: Asked): Request {
  assertAskable(snapshot, { project, labels, spec });
  if (spec.placement.task !== undefined)
    throw new ApiError(
      'InvalidRequest',
      'this request is about free resources, and those of a task are not free; leave the task out',
      {
        field: 'spec.placement.task',
      },
    );
  const request = requestOf(snapshot, { metadata: { project, labels }, spec });
  const query = queryOf(spec.placement);
  if (!query || spec.image !== undefined || spec.size !== undefined) return request;
  const asked: Record<string, number> = { ...request.amounts };
  if (spec.cpus === undefined && query.amounts['VCPU'] === undefined) delete asked['VCPU'];
  if (spec.memoryMiB === undefined && query.amounts['MEMORY_MB'] === undefined) delete asked['MEMORY_MB'];
  return withKeys({ ...request, ...demandOf(snapshot, spec), amounts: asked });
}

/** `rack=r1,disk=ssd`. */
function labelsOf(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(',').map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new ApiError('InvalidRequest', 'hostLabels must be KEY=VALUE,...', { field: 'hostLabels' });
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
}
