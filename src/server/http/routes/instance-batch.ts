// Many instances in one request: each item is decided like a create of its own, and the answer comes when all are durable. An item
// that is refused says so in its place and takes nothing else with it.

import { type Static, Type } from 'typebox';
import { isRecord } from '../../../base/is-record.ts';
import { ApiError } from '../../../api/errors.ts';
import { instanceBatchMax } from '../../../api/instance-batch.ts';
import { parse } from '../../../api/parse.ts';
import { type AnyResource, resourceDefinitions } from '../../../api/resources/index.ts';
import { instanceRoutes } from '../../../api/routes/instances.ts';
import { assertMay, may } from '../../../core/access/may.ts';
import type { Principal } from '../../../core/access/principal.ts';
import type { Decision } from '../../../core/operations/decision.ts';
import type { Context } from '../../../core/state/context.ts';
import type { Entry, Snapshot } from '../../../core/state/snapshot.ts';
import { type Decided, type Decider, forProject } from '../../decide.ts';
import { requestTraceId } from '../../tracing/request-trace.ts';
import { bind } from './bind.ts';
import { toApiError } from '../exchange.ts';
import { decideAllFor, permitted } from '../on-behalf.ts';
import { type Seen, seesAll, visibleTo } from './visible.ts';
import { JsonWriter } from '../json-writer.ts';
import { present } from './present.ts';
import { resourceOperations } from './resource-operations.ts';
import { createBody, idempotencyKeyOf, inputOf } from './sent-resource.ts';
import { placing, shown } from './resource-routes.ts';
import { type Route, Written } from '../route.ts';

const definition = resourceDefinitions.instance;
const itemBody = createBody(definition);

/** Items are checked one by one, so that a wrong one does not refuse the others. */
const BatchBody = Type.Object(
  { items: Type.Array(Type.Unknown(), { minItems: 1, maxItems: instanceBatchMax }) },
  { additionalProperties: false },
);

export function instanceBatchRoute(decider: Decider): Route {
  return bind(instanceRoutes.batch, async ({ body }, request) => {
    const { items }: Static<typeof BatchBody> = parse(BatchBody, body);
    const { idempotencyKey } = idempotencyKeyOf(request);
    const { principal } = request.caller;
    const atOnce = inOneLine(items);
    const line = forProject(lineOf(items, principal, decider.cache), decider);
    const creates = items.map((item, i) => {
      const key = idempotencyKey === undefined ? {} : { idempotencyKey: `${idempotencyKey}/${i}` };
      const create = permitted(principal, (snapshot: Snapshot, ctx: Context): Decision => {
        const input = { ...inputOf(parse(itemBody, item), definition), ...key };
        assertMay(snapshot, principal, { verb: 'create', resource: 'instance', project: input.project });
        return resourceOperations.instance.create(snapshot, input, ctx);
      });
      return atOnce ? placing(create) : create;
    });
    const traceId = requestTraceId(request.caller);
    const all = await decideAllFor(line, request, creates);
    const results = all.map((done, index) => resultOf(done, { index, traceId }, decider));
    if (!seesAll(principal)) {
      const seen = visibleTo(principal, decider.cache);
      return { status: 200, json: { items: results.map((result) => jsonOf(result, seen)) } };
    }
    return new Written(200, textOf(results), () => ({ items: results.map((result) => jsonOf(result)) }));
  });
}

/** What became of an item: the instance, and how it is stored; or what its own request would have answered. */
type Result =
  | { readonly instance: Entry<AnyResource>; readonly stored: Uint8Array | undefined }
  | { readonly fault: ReturnType<ApiError['toBody']> };

function jsonOf(result: Result, seen: Seen = (resource) => resource): unknown {
  return 'fault' in result ? result.fault : { instance: seen(present(result.instance), 'one') };
}

/** Of an instance that has just been stored: more than most are long. */
const bytesPerItem = 1_200;

function textOf(results: readonly Result[]): Uint8Array {
  const text = new JsonWriter(results.length * bytesPerItem);
  text.text('{"items":[');
  for (const [i, result] of results.entries()) {
    if (i > 0) text.text(',');
    if ('fault' in result) text.text(JSON.stringify(result.fault));
    else {
      const { instance, stored } = result;
      text.text('{"instance":');
      if (!stored || !text.resource(stored, instance.revision)) text.text(JSON.stringify(present(instance)));
      text.text('}');
    }
  }
  text.text(']}');
  return text.take();
}

/** Whether none of them would overtake another by its priority, or by its project's share. */
function inOneLine(items: readonly unknown[]): boolean {
  const [first] = items;
  return items.every(
    (item) =>
      fieldOf(item, 'spec', 'priority') === fieldOf(first, 'spec', 'priority') &&
      fieldOf(item, 'metadata', 'project') === fieldOf(first, 'metadata', 'project'),
  );
}

/** In whose line a batch waits: that of its first item that is not refused. Throws `Forbidden` when all are. */
function lineOf(items: readonly unknown[], principal: Principal, snapshot: Snapshot): string {
  const projects = items.map(projectOf);
  const inThe = (project: string) => ({ verb: 'create', resource: 'instance', project }) as const;
  const [first = 'default'] = projects;
  const allowed = projects.find((project) => may(principal, inThe(project), snapshot) === undefined);
  if (allowed === undefined) assertMay(snapshot, principal, inThe(first));
  return allowed ?? first;
}

function projectOf(item: unknown): string {
  const project = fieldOf(item, 'metadata', 'project');
  return typeof project === 'string' ? project : 'default';
}

function fieldOf(item: unknown, part: string, name: string): unknown {
  const within = isRecord(item) ? item[part] : undefined;
  return isRecord(within) ? within[name] : undefined;
}

function resultOf(
  done: Decided<Decision> | { readonly error: unknown },
  { index, traceId }: { readonly index: number; readonly traceId: string },
  decider: Decider,
): Result {
  try {
    if ('error' in done) throw done.error;
    const instance = shown('instance', done, decider.cache);
    return { instance, stored: decider.committer.writtenNow(instance.value) };
  } catch (error) {
    const fault = toApiError(error);
    // An unexpected error ends the request: it must reach the log.
    if (fault.code === 'Internal') throw fault;
    return { fault: at(`items[${index}]`, fault).toBody(traceId) };
  }
}

/** `spec.cpus` → `items[3].spec.cpus`. */
function at(place: string, fault: ApiError): ApiError {
  const { field } = fault;
  if (field === 'Idempotency-Key') return fault;
  return new ApiError(fault.code, fault.message, {
    field: field === undefined || field === 'body' ? place : `${place}.${field}`,
    details: fault.details,
  });
}
