// What is asked for in a query string: like an instance, or as OpenStack Placement is asked.

import { ApiError } from '../../api/errors.ts';
import { parse } from '../../api/parse.ts';
import { AskSpec } from '../../api/resources/task.ts';
import { assertAskable } from '../../core/operations/askable.ts';
import { demandOf, queryOf } from '../../core/scheduler/demand.ts';
import { type Request, withKeys, requestOf } from '../../core/scheduler/request.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Query } from './route.ts';

export interface Asked {
  readonly project: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: AskSpec;
}

const texts = ['size', 'image'] as const;
const placementTexts = ['pool', 'driver', 'profile'] as const;
const numbers = ['cpus', 'memoryMiB', 'diskGiB'] as const;
const known = [...texts, ...placementTexts, ...numbers, 'project', 'gpus', 'hostLabels'];
/** Parameters of OpenStack Placement, handed on as they are. */
const placementName = /^(resources|required|root_required|group_policy)/;

/** Throws `InvalidRequest`, naming the parameter. `more` are parameters that the caller reads itself. */
export function askedBy(query: Query, more: readonly string[]): Asked {
  const placementNames = [...query.names()].filter((name) => placementName.test(name));
  query.only(...known, ...more, ...placementNames);
  const text = new URLSearchParams(
    placementNames.flatMap((name) => query.all(name).map((value): [string, string] => [name, value])),
  ).toString();
  const placement: Record<string, unknown> = text === '' ? {} : { query: text };
  const spec: Record<string, unknown> = { placement };
  for (const name of texts) if (query.text(name) !== undefined) spec[name] = query.text(name);
  for (const name of placementTexts) if (query.text(name) !== undefined) placement[name] = query.text(name);
  for (const name of numbers) {
    const value = query.integer(name, { min: 0, max: 2 ** 31 });
    if (value !== undefined) spec[name] = value;
  }
  const gpus = query.integer('gpus', { min: 1, max: 64 });
  if (gpus !== undefined) spec['gpus'] = { count: gpus };
  const labels = query.text('hostLabels');
  if (labels !== undefined) placement['hostLabels'] = labelsOf(labels);
  return { project: query.text('project') ?? 'default', labels: {}, spec: parse(AskSpec, spec) };
}

/**
 * As a request. Who asks with a resource query and says nothing else of the size gets what the query says, without the defaults of an
 * instance. Throws `InvalidRequest` for what cannot be meant.
 */
export function requestFor(snapshot: Snapshot, { project, labels, spec }: Asked): Request {
  assertAskable(snapshot, { project, labels, spec });
  if (spec.placement.task !== undefined)
    throw new ApiError('InvalidRequest', 'this is about free room, and what a task holds is not; leave the task out', {
      field: 'spec.placement.task',
    });
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
