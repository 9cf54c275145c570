// What hosts have and hold: all of them by page, and one with its providers; and what projects ask for together.

import { assertMay } from '../../../core/access/may.ts';
import { ApiError } from '../../../api/errors.ts';
import { capacityRoutes as routes } from '../../../api/routes/capacity.ts';
import { chargedTo } from '../../../core/queue/quotas.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import { projectTotals } from '../../../core/scheduler/project-totals.ts';
import { fleetMapOf } from '../../../core/scheduler/fleet-map.ts';
import { providersOf, usageOf } from '../../../core/scheduler/usage.ts';
import { epochOf } from '../../../core/state/cluster-state.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import { bind } from './bind.ts';
import { knowsNames, visibleKeys } from './visible.ts';
import { RecentAnswers } from '../../recent-answers.ts';
import { type Route, Written } from '../route.ts';
import type { GuestUsages } from '../../metrics/guest-usages.ts';

const labelsMax = 8;

interface Parts {
  readonly decider: Decider;
  readonly usages: GuestUsages;
  /** On the monotonic clock: what was received before is too old to be shown. */
  readonly freshSinceMs: () => number;
}

export function usageRoutes({ decider: { cache, clock }, usages, freshSinceMs }: Parts): Route[] {
  const maps = new RecentAnswers(clock, (labels: string) =>
    Promise.resolve(mapText(cache, labelsIn(labels), usages.totals(freshSinceMs()))),
  );
  return [
    bind(routes.usage, ({ query: { host, limit, continue: after } }) => {
      const { items, more } = usageOf(cache, {
        limit,
        ...(after === undefined ? {} : { after }),
        ...(host === undefined ? {} : { host }),
      });
      const last = items.at(-1)?.host;
      return { status: 200, json: { items, ...(more && last !== undefined ? { continue: last } : {}) } };
    }),
    bind(routes.fleetMap, async ({ query: { labels: text, maxAgeMs } }) => {
      const labels = labelsIn(text);
      if (labels.length > labelsMax)
        throw new ApiError('InvalidRequest', `labels: at most ${labelsMax}`, { field: 'labels' });
      const map = await maps.of(labels.join(), maxAgeMs);
      return new Written(200, map, (): unknown => JSON.parse(map.toString()));
    }),
    bind(routes.projectTotals, ({ query: { project } }, { caller: { principal } }) => {
      const known = visibleKeys(principal, 'instance', cache, project);
      const rights = rightsOf(principal, cache);
      const knows = (of: string): boolean =>
        (project === undefined || of === project) &&
        (known === 'all' || (!rights.isShare && known(`instances/${of}/`))); // a share is of one instance, not of a sum
      return { status: 200, json: { items: [...projectTotals(cache)].filter((total) => knows(total.project)) } };
    }),
    bind(routes.projectUsage, ({ params: { project } }, { caller }) => {
      assertMay(cache, caller.principal, { verb: 'read', resource: 'project', project });
      return { status: 200, json: { project, charged: chargedTo(cache, project) } };
    }),
    bind(routes.providers, ({ params: { host } }, { caller }) => {
      if (!cache.get('host', keys.host(host)))
        throw new ApiError('NotFound', `there is no host "${host.slice(0, 80)}"`);
      return { status: 200, json: providersOf(cache, host, knowsNames(caller.principal, cache)) };
    }),
  ];
}

function labelsIn(text: string): string[] {
  return text.split(',').filter((label) => label !== '');
}

/** Everyone who may read hosts sees the same of them, so it is written once for all. */
function mapText(
  cache: Decider['cache'],
  labels: readonly string[],
  totals: ReturnType<GuestUsages['totals']>,
): Buffer {
  const { revision } = cache;
  const hosts = [...cache.listCommitted('host')].map(({ value }) => value);
  const map = fleetMapOf(cache, { hosts, labels });
  const of = (name: string) => totals.get(name);
  const use = {
    milliCpus: map.names.map((name) => of(name)?.milliCpus ?? null),
    memoryMiB: map.names.map((name) => of(name)?.memoryMiB ?? null),
  };
  const measured = totals.size > 0 ? { use } : {};
  return Buffer.from(JSON.stringify({ revision, epoch: epochOf(cache), ...map, ...measured }));
}
