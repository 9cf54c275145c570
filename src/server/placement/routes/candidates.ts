// /allocation_candidates.

import type { CandidateAnswer, CandidateProvider, CandidateQuestion } from '../../../core/ledger/candidate-question.ts';
import { candidateIndexOf } from '../../../core/ledger/candidates/indexed-providers.ts';
import { findCandidates } from '../../../core/ledger/candidates/search.ts';
import { badRequest } from '../../../core/operations/placement/fault.ts';
import { isKnownName, unknownClass } from '../../../core/operations/placement/names.ts';
import type { Inventory } from '../../../core/state/records.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import { placementIndexOf } from '../../../core/state/views/placement-index.ts';
import { checkQuery, type Exchange, form, type Reply } from '../exchange.ts';
import { candidateQuery, candidateQuestion } from '../wire/candidate-query.ts';
import { shownTraits } from '../wire/provider.ts';
import { modified } from './providers.ts';
import type { PlacementRoute } from './route.ts';

export const candidateRoutes: readonly PlacementRoute[] = [
  { method: 'GET', path: '/allocation_candidates', handle: list, since: 10 },
];

function list(exchange: Exchange): Reply {
  checkQuery(exchange, form(exchange, candidateQuery));
  const { snapshot, version, request, ctx, randomOrder } = exchange;
  const asked = candidateQuestion(request.query, version);
  assertKnown(snapshot, asked);
  const question = withTrees(snapshot, asked);
  const order = { strategy: 'depth-first' as const, ...(randomOrder ? { prng: ctx.prng } : {}) };
  const answer = question ? findCandidates(candidateIndexOf(snapshot), question, order) : nothing;
  return {
    status: 200,
    json: {
      allocation_requests: requestsOf(snapshot, answer, version),
      provider_summaries: summariesOf(snapshot, answer, { question: asked, version }),
    },
    ...modified(version, 'now'),
  };
}

const nothing: CandidateAnswer = { requests: [], summarized: [], complete: true };

function assertKnown(snapshot: Snapshot, { groups, rootRequired, rootForbidden }: CandidateQuestion): void {
  const wrong = (traits: readonly string[]): void => {
    const unknown = [...new Set(traits)].filter((trait) => !isKnownName(snapshot, 'trait', trait)).sort();
    if (unknown.length > 0) throw badRequest(`No such trait(s): ${unknown.join(', ')}.`);
  };
  wrong(rootRequired);
  wrong(rootForbidden);
  for (const { resources, required, forbidden } of groups) {
    const unknown = Object.keys(resources).find((name) => !isKnownName(snapshot, 'class', name));
    if (unknown !== undefined)
      throw badRequest(`Invalid resource class in resources parameter: ${unknownClass(unknown).message}`);
    wrong(required.flat());
    wrong(forbidden);
  }
}

/** With provider ids for UUIDs; undefined: one of the trees is of no provider, so nothing fits. */
function withTrees(snapshot: Snapshot, question: CandidateQuestion): CandidateQuestion | undefined {
  const index = placementIndexOf(snapshot);
  const groups: CandidateQuestion['groups'][number][] = [];
  for (const group of question.groups) {
    const inTree = group.inTree === undefined ? undefined : index.idOf(group.inTree);
    if (group.inTree !== undefined && inTree === undefined) return undefined;
    groups.push(inTree === undefined ? group : { ...group, inTree });
  }
  return { ...question, groups };
}

function requestsOf(snapshot: Snapshot, { requests }: CandidateAnswer, version: number): object[] {
  const index = placementIndexOf(snapshot);
  return requests.map(({ allocations, mappings }) => {
    const parts = Object.entries(allocations).map(([id, resources]) => ({ uuid: index.uuidOf(id), resources }));
    if (version < 12)
      return { allocations: parts.map(({ uuid, resources }) => ({ resource_provider: { uuid }, resources })) };
    const byProvider = Object.fromEntries(parts.map(({ uuid, resources }) => [uuid, { resources }]));
    if (version < 34) return { allocations: byProvider };
    const bySuffix = Object.entries(mappings).map(([suffix, ids]) => [suffix, ids.map((id) => index.uuidOf(id))]);
    return { allocations: byProvider, mappings: Object.fromEntries(bySuffix) };
  });
}

function summariesOf(
  snapshot: Snapshot,
  { summarized }: CandidateAnswer,
  { question, version }: { readonly question: CandidateQuestion; readonly version: number },
): object {
  const index = placementIndexOf(snapshot);
  const asked = new Set(question.groups.flatMap(({ resources }) => Object.keys(resources)));
  const summary = (provider: CandidateProvider): object => ({
    resources: Object.fromEntries(
      Object.entries(provider.inventories)
        .filter(([name]) => version >= 27 || asked.has(name))
        .map(([name, inventory]) => [
          name,
          { capacity: shownCapacity(inventory), used: Math.ceil(provider.used.get(name) ?? 0) },
        ]),
    ),
    ...(version >= 17 ? { traits: shownTraits(provider) } : {}),
    ...(version >= 29
      ? {
          parent_provider_uuid: provider.parent === null ? null : index.uuidOf(provider.parent),
          root_provider_uuid: index.uuidOf(provider.root),
        }
      : {}),
  });
  return Object.fromEntries(summarized.map((provider) => [index.uuidOf(provider.id), summary(provider)]));
}

/** Below zero where more is reserved than there is, as a reshape may leave it. */
function shownCapacity({ total, reserved, allocationRatio }: Inventory): number {
  return Math.trunc((total - reserved) * allocationRatio);
}
