// What guests use now: one, and all that the caller may read.

import { ApiError } from '../../../api/errors.ts';
import type { InstanceUsage } from '../../../api/guests/guest-usage.ts';
import { instanceRoutes as routes } from '../../../api/routes/instances.ts';
import { assertMay, assertMayOn, mayRead } from '../../../core/access/may.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import { keys } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import type { GuestUsages, MeasuredGuest } from '../../metrics/guest-usages.ts';
import { bind } from './bind.ts';
import { findOne } from './find-resource.ts';
import type { Route } from '../route.ts';

interface Parts {
  readonly decider: Decider;
  readonly usages: GuestUsages;
  /** On the monotonic clock: what was received before is too old to be shown. */
  readonly freshSinceMs: () => number;
}

export function guestUsageRoutes({ decider: { cache }, usages, freshSinceMs }: Parts): Route[] {
  return [
    bind(routes.usage, ({ params, query }, { caller }) => {
      const { value } = findOne('instance', cache, { caller, name: params.name, project: query.project });
      assertMayOn(cache, caller.principal, 'read', value);
      const { metadata, status } = value;
      const found = status.host === undefined ? undefined : usages.of(status.host, metadata.id, freshSinceMs());
      if (found?.incarnation !== status.incarnation)
        throw new ApiError(
          'NotFound',
          `instance "${metadata.name}" is not measured now: it does not run, its driver does not measure guests, or its host reports to another server`,
        );
      return { status: 200, json: shown(found, metadata) };
    }),
    bind(routes.listUsage, ({ query: { project, limit } }, { caller }) => {
      const { principal } = caller;
      if (project !== undefined && !rightsOf(principal, cache).isShare)
        assertMay(cache, principal, { verb: 'read', resource: 'instance', project });
      const items: InstanceUsage[] = [];
      for (const { guests } of usages.hosts(freshSinceMs())) {
        for (const guest of guests) {
          const consumer = cache.allocationsOfConsumer(guest.instanceId)[0]?.value.consumer;
          if (consumer === undefined || (project !== undefined && consumer.project !== project)) continue;
          const instance = cache.get('instance', keys.instance(consumer.project, consumer.name))?.value;
          if (instance && mayRead(principal, instance, cache)) items.push(shown(guest, instance.metadata));
        }
      }
      items.sort((a, b) => (b.cpus ?? 0) - (a.cpus ?? 0) || (a.instance < b.instance ? -1 : 1));
      return { status: 200, json: { items: items.slice(0, limit) } };
    }),
  ];
}

function shown(
  { host, measuredAtMs, cpus, counters }: MeasuredGuest,
  { project, name }: { readonly project: string; readonly name: string },
): InstanceUsage {
  const rounded = cpus === undefined ? {} : { cpus: Math.round(cpus * 1_000) / 1_000 };
  return { project, instance: name, host, measuredAtMs, ...rounded, ...counters };
}
