// The providers that a query of /resource_providers asks for.

import { fit } from '../../core/ledger/ledger.ts';
import { aggregatesOf } from '../../core/operations/placement/aggregates-of.ts';
import { badRequest } from '../../core/operations/placement/fault.ts';
import { isKnownName } from '../../core/operations/placement/names.ts';
import type { Provider } from '../../core/state/records.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { nameOf, placementIndexOf } from '../../core/state/views/placement-index.ts';
import { type Exchange, queryValue } from './exchange.ts';
import { aggregatesIn, amountsIn, traitsIn } from './wire/query.ts';

export function listProviders(exchange: Exchange): Provider[] {
  const { snapshot, version, request } = exchange;
  const index = placementIndexOf(snapshot);
  const values = (name: string) => request.query.getAll(name);
  const aggregates = aggregatesIn(values('member_of'), version);
  const traits = traitsIn(values('required'), version);
  const name = queryValue(exchange, 'name');
  const uuid = queryValue(exchange, 'uuid');
  const resources = queryValue(exchange, 'resources');
  const amounts = resources === undefined ? {} : amountsIn(resources);
  const inTree = queryValue(exchange, 'in_tree');
  assertKnown(snapshot, [...traits.required.flat(), ...traits.forbidden], Object.keys(amounts));
  const treeId = inTree ? index.idOf(inTree) : undefined;
  if (inTree && treeId === undefined) return [];
  const root = treeId === undefined ? undefined : index.rootOf(treeId);
  const isIn = (all: readonly string[]): boolean =>
    aggregates.memberOf.every((any) => any.some((each) => all.includes(each))) &&
    !aggregates.forbidden.some((each) => all.includes(each));
  const has = (provider: Provider): boolean =>
    (!name || nameOf(provider) === name) &&
    (root === undefined || index.rootOf(provider.id) === root) &&
    traits.required.every((any) => any.some((trait) => provider.traits.includes(trait))) &&
    !traits.forbidden.some((trait) => provider.traits.includes(trait)) &&
    isIn(aggregatesOf(snapshot, provider)) &&
    fit(provider, snapshot.usedBy(provider.id), amounts).fits;
  const found: Provider[] = [];
  for (const id of uuid ? [index.idOf(uuid)] : index.ids()) {
    const provider = id === undefined ? undefined : index.provider(id);
    if (provider && has(provider)) found.push(provider);
  }
  return found;
}

function assertKnown(snapshot: Snapshot, traits: readonly string[], classes: readonly string[]): void {
  const unknown = [...new Set(traits)].filter((trait) => !isKnownName(snapshot, 'trait', trait)).sort();
  if (unknown.length > 0)
    throw badRequest(`Invalid trait(s) in "required" parameter: No such trait(s): ${unknown.join(', ')}.`);
  const wrong = classes.find((name) => !isKnownName(snapshot, 'class', name));
  if (wrong !== undefined)
    throw badRequest(`Invalid resource class in resources parameter: No such resource class ${wrong}.`);
}
