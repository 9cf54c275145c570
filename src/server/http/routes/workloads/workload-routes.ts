// Revisions, undo, scale and endpoints of workloads.

import type { Workload } from '../../../../api/resources/workload.ts';
import { workloadRoutes as routes } from '../../../../api/routes/workloads.ts';
import { assertMayOn, notFound } from '../../../../core/access/may.ts';
import { assertNumbered, scalePlanOf, scaleWorkload } from '../../../../core/operations/workloads/scale.ts';
import { historyOf } from '../../../../core/operations/workloads/revisions.ts';
import { undoWorkload } from '../../../../core/operations/workloads/workload.ts';
import { endpointsOf } from '../../../../core/workloads/endpoints.ts';
import { prefixOf } from '../../../../core/state/keys.ts';
import type { Entry } from '../../../../core/state/snapshot.ts';
import { type Decider, forProject } from '../../../decide.ts';
import { decideFor, permitted } from '../../on-behalf.ts';
import type { Route, RouteRequest } from '../../route.ts';
import { bind } from '../bind.ts';
import { present } from '../present.ts';
import { findOne } from '../find-resource.ts';
import { visibleTo } from '../visible.ts';
import { byHash, dryRunOfRollout } from './rollouts.ts';
import { withoutSecretsOfSpec } from '../without-secrets.ts';

interface Named {
  readonly name: string;
  readonly project: string;
}

export function workloadRoutes(decider: Decider): Route[] {
  const { cache, clock } = decider;
  const find = ({ caller }: RouteRequest, named: Named): Entry<Workload> =>
    findOne('workload', cache, { caller, ...named });
  const findToChange = (request: RouteRequest, named: Named): Entry<Workload> => {
    const entry = find(request, named);
    assertMayOn(cache, request.caller.principal, 'update', entry.value);
    return entry;
  };
  return [
    bind(routes.history, ({ params: { name }, query: { project } }, request) => {
      const { value } = find(request, { name, project });
      const items = historyOf(cache, value).map(({ number, createdAtMs, template }) => ({
        number,
        createdAtMs,
        isPresent: number === value.status.revision,
        isStable: number === value.status.stableRevision,
        template: { ...template, spec: withoutSecretsOfSpec(template.spec) },
      }));
      return { status: 200, json: { items } };
    }),
    bind(routes.undo, async ({ params: { name }, query: { project, dryRun }, body: { apply, ...to } }, request) => {
      const { key } = findToChange(request, { name, project });
      const { principal } = request.caller;
      const undo = permitted(principal, (snapshot, ctx) => undoWorkload(snapshot, { key, ...to }, ctx));
      if (dryRun) return dryRunOfRollout('undo', decider, request.caller, undo);
      await decideFor(forProject(project, decider), request, byHash('undo', apply, undo));
      const entry = cache.get('workload', key);
      if (!entry) throw notFound('workload', name);
      return { status: 200, json: visibleTo(principal, cache)(present(entry), 'several') };
    }),
    bind(routes.scale, async ({ params: { name }, query: { project, dryRun }, body }, request) => {
      const { value } = findToChange(request, { name, project });
      if (dryRun) {
        assertNumbered(value);
        const plan = scalePlanOf(cache, value, body.replicas, clock.nowMs());
        return { status: 200, json: { ...plan, applied: false } };
      }
      const input = { project: value.metadata.project, name: value.metadata.name, ...body };
      const { decision } = await decideFor(
        forProject(project, decider),
        request,
        permitted(request.caller.principal, (snapshot, ctx) => scaleWorkload(snapshot, input, ctx)),
      );
      return { status: 200, json: { ...decision.shown, applied: true } };
    }),
    bind(routes.endpoints, ({ params: { name }, query: { project, watch } }, request) => {
      const { key, value } = find(request, { name, project });
      if (!watch) return { status: 200, json: { items: endpointsOf(cache, value) } };
      return { status: 200, lines: watched(decider, { key, id: value.metadata.id }, request) };
    }),
  ];
}

/** The whole list, and again when it differs; ends with the workload. */
async function* watched(
  { cache }: Decider,
  { key, id }: { key: string; id: string },
  { signal }: RouteRequest,
): AsyncIterable<unknown> {
  const instances = prefixOf('instance');
  let wake = (): void => {};
  const forget = cache.onCommitted((changed) => {
    if (changed === key || changed.startsWith(instances)) wake();
  });
  signal.addEventListener('abort', () => wake(), { once: true });
  try {
    let last = '';
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve));
      const workload = cache.committed('workload', key)?.value;
      if (workload?.metadata.id !== id) return;
      const items = endpointsOf(cache, workload);
      const text = JSON.stringify(items);
      if (text !== last) yield { items };
      last = text;
      await woken;
    }
  } finally {
    forget();
  }
}
