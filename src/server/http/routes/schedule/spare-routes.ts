// `/spare`: spares, in the words of a placement service for bare-metal hosts.

import type { Spare } from '../../../../api/resources/spare.ts';
import { spareRoutes as routes } from '../../../../api/routes/spares.ts';
import { assertMay, assertMayOn, mayRead, notFound } from '../../../../core/access/may.ts';
import { releaseSpare } from '../../../../core/operations/spares/spare.ts';
import { prepareSpare, spareResultOf } from '../../../../core/operations/spares/spare-request.ts';
import type { Entry } from '../../../../core/state/snapshot.ts';
import { type Decider, forProject } from '../../../decide.ts';
import type { Caller } from '../../caller.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { findOne } from '../find-resource.ts';
import { idempotencyKeyOf } from '../sent-resource.ts';

export function spareRoutes({ decider }: { readonly decider: Decider }): Route[] {
  const { cache } = decider;
  return [
    bind(routes.prepare, async ({ query: { project = 'default' }, body }, request) => {
      const { principal } = request.caller;
      const question = { verb: 'create', resource: 'spare', project } as const;
      assertMay(cache, principal, question);
      const input = { project, request: body, ...idempotencyKeyOf(request) };
      const prepare = permitted(principal, (snapshot, ctx) => {
        assertMay(snapshot, principal, question);
        return prepareSpare(snapshot, input, ctx);
      });
      const { decision } = await decideFor(forProject(project, decider), request, prepare);
      const spare = cache.get('spare', decision.key)?.value;
      if (spare === undefined) throw notFound('spare', decision.key);
      return { status: 202, json: { spare_id: spare.metadata.id } };
    }),
    bind(routes.list, ({ query: { project = 'default' } }, { caller: { principal } }) => {
      assertMay(cache, principal, { verb: 'read', resource: 'spare', project });
      const spares = [...cache.listCommitted('spare')]
        .map(({ value }) => value)
        .filter((spare) => spare.metadata.project === project && mayRead(principal, spare, cache))
        .toSorted((a, b) => a.metadata.createdAtMs - b.metadata.createdAtMs);
      return { status: 200, json: { spares: spares.map((spare) => spareResultOf(spare, cache)) } };
    }),
    bind(routes.show, ({ params, query }, { caller }) => ({
      status: 200,
      json: spareResultOf(spareOf(decider, caller, { name: params.spare, project: query.project }).value, cache),
    })),
    bind(routes.release, async ({ params, query: { project, force } }, request) => {
      const { caller } = request;
      const { key, value } = spareOf(decider, caller, { name: params.spare, project });
      assertMayOn(cache, caller.principal, 'delete', value);
      const { id, name, project: own } = value.metadata;
      await decideFor(
        forProject(own, decider),
        request,
        permitted(caller.principal, (snapshot, ctx) => {
          const now = snapshot.get('spare', key)?.value;
          if (now?.metadata.id !== id) throw notFound('spare', id);
          assertMayOn(snapshot, caller.principal, 'delete', now);
          return releaseSpare(snapshot, { project: own, name, force }, ctx);
        }),
      );
      const released: Spare = cache.get('spare', key)?.value ?? value;
      return { status: 200, json: spareResultOf(released, cache) };
    }),
  ];
}

/** By id only: names are of people. */
function spareOf(
  { cache }: Decider,
  caller: Caller,
  { name, project }: { readonly name: string; readonly project: string | undefined },
): Entry<Spare> {
  if (!name.startsWith('spare_')) throw notFound('spare', name);
  return findOne('spare', cache, { caller, name, project });
}
