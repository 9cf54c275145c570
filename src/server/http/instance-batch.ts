// Many instances in one request: each item is decided like a create of its own, and the answer comes when all are durable. An item
// that is refused says so in its place and takes nothing else with it.

import { type Static, Type } from 'typebox';
import { ApiError } from '../../api/errors.ts';
import { instanceBatchMax } from '../../api/instance-batch.ts';
import { parse } from '../../api/parse.ts';
import { resourceDefinitions } from '../../api/resources/index.ts';
import { decideAndCommit, type Decider } from '../decide.ts';
import { toApiError } from './exchange.ts';
import { resourceOperations } from './resource-operations.ts';
import { createBody, idempotencyKeyOf, inputOf, shown } from './resource-routes.ts';
import type { Route } from './route.ts';

const definition = resourceDefinitions.instance;
const itemBody = createBody(definition);

/** Items are checked one by one, so that a wrong one does not refuse the others. */
const BatchBody = Type.Object(
  { items: Type.Array(Type.Unknown(), { minItems: 1, maxItems: instanceBatchMax }) },
  { additionalProperties: false },
);

/** 8 MiB: a thousand instances with 8 KiB each, or a hundred with the longest user-data. Read in some 100 ms. */
const batchBytesMax = 8 << 20;

export function instanceBatchRoute(decider: Decider): Route {
  return {
    method: 'POST',
    path: '/v1/instances/batch',
    verb: 'write',
    bodyBytesMax: batchBytesMax,
    async handle(request) {
      request.query.only();
      const { items }: Static<typeof BatchBody> = parse(BatchBody, request.body);
      const { idempotencyKey } = idempotencyKeyOf(request);
      const done = items.map((item, i) =>
        createItem(decider, item, `items[${i}]`, idempotencyKey === undefined ? undefined : `${idempotencyKey}/${i}`),
      );
      return { status: 200, json: { items: await Promise.all(done) } };
    },
  };
}

async function createItem(
  decider: Decider,
  item: unknown,
  place: string,
  idempotencyKey: string | undefined,
): Promise<unknown> {
  try {
    const input = {
      ...inputOf(parse(itemBody, item), definition),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    };
    const done = await decideAndCommit(decider, (snapshot, ctx) =>
      resourceOperations.instance.create(snapshot, input, ctx),
    );
    return { instance: shown('instance', done, decider.cache) };
  } catch (error) {
    const fault = toApiError(error);
    // What nobody foresaw ends the request: it must reach the log.
    if (fault.code === 'Internal') throw fault;
    return at(place, fault).toBody();
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
