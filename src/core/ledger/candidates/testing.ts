// A small fleet of providers for tests, written as a list.

import type { Amounts } from '../../../api/resources/metadata.ts';
import type { Inventory } from '../../state/records.ts';
import type { CandidateGroup, CandidateIndex, CandidateProvider, CandidateQuestion } from '../candidate-question.ts';

export interface TestProvider {
  readonly id: string;
  readonly parent?: string;
  readonly totals?: Amounts;
  readonly used?: Amounts;
  readonly maxUnit?: number;
  /** By class: other units than the usual ones. */
  readonly units?: Readonly<Record<string, Partial<Inventory>>>;
  readonly traits?: readonly string[];
  readonly aggregates?: readonly string[];
}

/** Parents stand before their children. */
export function testIndex(providers: readonly TestProvider[]): CandidateIndex {
  const byId = new Map<string, CandidateProvider>();
  for (const { id, parent, totals = {}, used = {}, units = {}, maxUnit, traits = [], aggregates = [] } of providers) {
    const inventories = Object.fromEntries(
      Object.entries(totals).map(([resourceClass, total]) => [
        resourceClass,
        {
          total,
          reserved: 0,
          minUnit: 1,
          maxUnit: maxUnit ?? Math.max(1, total),
          stepSize: 1,
          allocationRatio: 1,
          ...units[resourceClass],
        },
      ]),
    );
    const root = parent === undefined ? id : (byId.get(parent)?.root ?? id);
    const held = new Map(Object.entries(used));
    byId.set(id, { id, parent: parent ?? null, root, generation: 0, inventories, used: held, traits, aggregates });
  }
  const all = [...byId.values()];
  const trees = new Map<string, CandidateProvider[]>();
  for (const provider of all) trees.set(provider.root, [...(trees.get(provider.root) ?? []), provider]);
  return {
    roots: () => [...trees.keys()],
    tree: (root) => trees.get(root) ?? [],
    provider: (id) => byId.get(id),
    sharing: () => all.filter(({ traits }) => traits.includes('MISC_SHARES_VIA_AGGREGATE')).map(({ id }) => id),
    nested: () => all.some(({ parent }) => parent !== null),
  };
}

export function testGroup(suffix: string, resources: Amounts, changes: Partial<CandidateGroup> = {}): CandidateGroup {
  return { suffix, resources, required: [], forbidden: [], memberOf: [], forbiddenAggregates: [], ...changes };
}

export function testQuestion(
  groups: readonly CandidateGroup[],
  changes: Partial<CandidateQuestion> = {},
): CandidateQuestion {
  return {
    groups,
    groupPolicy: 'none',
    rootRequired: [],
    rootForbidden: [],
    sameSubtree: [],
    nested: true,
    ...changes,
  };
}
