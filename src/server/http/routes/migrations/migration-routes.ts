// `/v1/instances/{name}/migration`: the move of an instance, shown and then begun by its hash.

import { migrationRoutes as routes } from '../../../../api/routes/migrations.ts';
import { assertMay } from '../../../../core/access/may.ts';
import { beginMigration, cancelMigration, showMigration } from '../../../../core/operations/instances/migrate.ts';
import type { Context } from '../../../../core/state/context.ts';
import type { Snapshot } from '../../../../core/state/snapshot.ts';
import type { Decider } from '../../../decide.ts';
import type { Caller } from '../../caller.ts';
import { decideFor } from '../../on-behalf.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';
import { findOne } from '../find-resource.ts';

const question = { verb: 'drain', resource: 'host' } as const;

export function migrationRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  const named = (caller: Caller, name: string, project: string) => {
    assertMay(cache, caller.principal, question);
    const { value } = findOne('instance', cache, { caller, name, project });
    return { project: value.metadata.project, name: value.metadata.name };
  };
  return [
    bind(routes.migrate, async ({ params, query, body: { apply: hash, ...options } }, request) => {
      const { principal } = request.caller;
      const instance = named(request.caller, params.name, query.project);
      if (hash === undefined) return { status: 200, json: { plan: showMigration(cache, instance, options) } };
      const begin = (snapshot: Snapshot, ctx: Context) => {
        assertMay(snapshot, principal, question);
        return beginMigration(snapshot, { ...instance, options, hash }, ctx);
      };
      const { decision } = await decideFor(decider, request, begin);
      return { status: 200, json: { migration: decision.begun } };
    }),
    bind(routes.cancel, async ({ params, query }, request) => {
      const { principal } = request.caller;
      const instance = named(request.caller, params.name, query.project);
      const cancel = (snapshot: Snapshot, ctx: Context) => {
        assertMay(snapshot, principal, question);
        return cancelMigration(snapshot, instance, ctx);
      };
      const { decision } = await decideFor(decider, request, cancel);
      return { status: 200, json: decision.ended };
    }),
  ];
}
