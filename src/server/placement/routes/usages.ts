// /usages and /resource_providers/{uuid}/usages.

import type { Amounts } from '../../../api/resources/metadata.ts';
import { providerOf } from '../../../core/operations/placement/providers.ts';
import { placementIndexOf } from '../../../core/state/views/placement-index.ts';
import { shownConsumer, type ShownConsumer } from '../../../core/operations/placement/consumers.ts';
import { checkQuery, type Exchange, form, HttpRefusal, queryValue, type Reply, uuidOf } from '../exchange.ts';
import { generationOf } from '../wire/provider.ts';
import { usageQuery } from '../wire/schemas.ts';
import { modified } from './providers.ts';
import type { PlacementRoute } from './route.ts';

export const usageRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: '/resource_providers/:uuid/usages', handle: ofProvider },
  { method: 'GET', path: '/usages', handle: ofProject, since: 9, needs: 'own' },
];

function ofProvider(exchange: Exchange): Reply {
  const { snapshot, version } = exchange;
  const uuid = uuidOf(exchange);
  const sorry = `No resource provider with uuid ${uuid} found: No resource provider with uuid ${uuid} found`;
  const provider = providerOf(snapshot, uuid, sorry);
  const used = snapshot.usedBy(provider.id);
  const usages = Object.keys(provider.inventories).map((name) => [name, Math.ceil(used.get(name) ?? 0)]);
  return {
    status: 200,
    json: {
      resource_provider_generation: generationOf(snapshot, provider),
      usages: Object.fromEntries(usages),
    },
    ...modified(version, 'now'),
  };
}

function ofProject(exchange: Exchange): Reply {
  const { version, request, snapshot } = exchange;
  const project = queryValue(exchange, 'project_id');
  if (!request.caller?.mayRead && (project === undefined || request.caller?.project !== project))
    throw new HttpRefusal(403, 'Policy does not allow placement:usages to be performed.');
  checkQuery(exchange, form(exchange, usageQuery));
  const user = queryValue(exchange, 'user_id');
  const consumers: ShownConsumer[] = [];
  for (const id of placementIndexOf(snapshot).consumersIn(project ?? '')) {
    const consumer = shownConsumer(snapshot, id);
    if (consumer && consumer.project === project && (user === undefined || consumer.user === user))
      consumers.push(consumer);
  }
  const usages = version < 38 ? sumOf(consumers) : byType(consumers, queryValue(exchange, 'consumer_type'));
  return { status: 200, json: { usages }, ...modified(version, 'now') };
}

function byType(consumers: readonly ShownConsumer[], asked: string | undefined): object {
  if (asked === 'all') return typed([['all', consumers]]);
  if (asked === 'unknown') return typed([['unknown', consumers.filter(({ type }) => type === undefined)]]);
  const types = new Map<string, ShownConsumer[]>();
  for (const consumer of consumers) {
    const { type = 'unknown' } = consumer;
    if (asked !== undefined && type !== asked) continue;
    types.set(type, [...(types.get(type) ?? []), consumer]);
  }
  return typed(types);
}

function typed(types: Iterable<readonly [string, readonly ShownConsumer[]]>): object {
  return Object.fromEntries(
    [...types]
      .filter(([, consumers]) => consumers.length > 0)
      .map(([type, consumers]) => [type, { ...sumOf(consumers), consumer_count: consumers.length }]),
  );
}

function sumOf(consumers: readonly ShownConsumer[]): Amounts {
  const sums = new Map<string, number>();
  for (const { allocations } of consumers)
    for (const { amounts } of allocations)
      for (const [name, amount] of Object.entries(amounts)) sums.set(name, (sums.get(name) ?? 0) + amount);
  return Object.fromEntries([...sums].map(([name, sum]) => [name, Math.ceil(sum)]));
}
