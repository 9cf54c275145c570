// Plain enumeration: all candidates, by trying every provider of the fleet in every slot of every tree. For tests: too slow for
// more than a few providers, and written after the documentation only, with nothing of the search in it.

import type {
  CandidateGroup,
  CandidateIndex,
  CandidateProvider,
  CandidateQuestion,
  CandidateRequest,
} from '../candidate-question.ts';

interface Choice {
  readonly group: CandidateGroup;
  readonly resourceClass?: string;
  readonly provider: CandidateProvider;
}

/** Candidates of several trees may be the same. */
export function enumerate(index: CandidateIndex, question: CandidateQuestion): CandidateRequest[] {
  const all = index.roots().flatMap((root) => index.tree(root));
  return index.roots().flatMap((rootId) => {
    const root = index.provider(rootId);
    if (!root || !isRootAsAsked(root, question)) return [];
    const reachable = all.filter((provider) => provider.root === rootId || isShared(index, provider, rootId));
    let choices: Choice[][] = [[]];
    for (const group of question.groups) {
      const parts = group.suffix === '' ? Object.keys(group.resources) : [undefined];
      for (const resourceClass of parts) {
        choices = choices.flatMap((chosen) =>
          reachable.map((provider) => [
            ...chosen,
            { group, provider, ...(resourceClass === undefined ? {} : { resourceClass }) },
          ]),
        );
      }
    }
    return choices.filter((chosen) => isCandidate(chosen, { index, question, root })).map(requestOf);
  });
}

function isRootAsAsked({ traits }: CandidateProvider, { rootRequired, rootForbidden }: CandidateQuestion): boolean {
  return (
    rootRequired.every((trait) => traits.includes(trait)) && !rootForbidden.some((trait) => traits.includes(trait))
  );
}

function isShared(index: CandidateIndex, provider: CandidateProvider, root: string): boolean {
  return (
    provider.traits.includes('MISC_SHARES_VIA_AGGREGATE') &&
    index.tree(root).some(({ aggregates }) => aggregates.some((uuid) => provider.aggregates.includes(uuid)))
  );
}

interface Scene {
  readonly index: CandidateIndex;
  readonly question: CandidateQuestion;
  readonly root: CandidateProvider;
}

function isCandidate(chosen: readonly Choice[], scene: Scene): boolean {
  return (
    chosen.every((choice) => mayGive(choice, scene)) &&
    plainTraitsHold(chosen) &&
    fitsTogether(chosen, scene.index) &&
    policiesHold(chosen, scene)
  );
}

function mayGive({ group, resourceClass, provider }: Choice, { index, root }: Scene): boolean {
  const classes = resourceClass === undefined ? Object.keys(group.resources) : [resourceClass];
  const inventoriesFit = classes.every((each) => {
    const inventory = provider.inventories[each];
    const amount = group.resources[each] ?? 0;
    return inventory !== undefined && amount >= inventory.minUnit && amount % inventory.stepSize === 0;
  });
  if (!inventoriesFit || group.forbidden.some((trait) => provider.traits.includes(trait))) return false;
  if (group.inTree !== undefined && index.provider(group.inTree)?.root !== provider.root) return false;
  if (group.suffix === '' && group.inTree !== undefined && provider.root !== root.id) return false;
  const member = (of: CandidateProvider): boolean =>
    group.memberOf.every((any) => any.some((uuid) => of.aggregates.includes(uuid)));
  const banned = (of: CandidateProvider): boolean =>
    group.forbiddenAggregates.some((uuid) => of.aggregates.includes(uuid));
  if (group.suffix !== '')
    return (
      member(provider) &&
      !banned(provider) &&
      group.required.every((any) => any.some((trait) => provider.traits.includes(trait)))
    );
  return (member(provider) || (provider.root === root.id && member(root))) && !banned(provider) && !banned(root);
}

function plainTraitsHold(chosen: readonly Choice[]): boolean {
  const plain = chosen.filter(({ group }) => group.suffix === '');
  const traits = plain.flatMap(({ provider }) => provider.traits);
  return (plain[0]?.group.required ?? []).every((any) => any.some((trait) => traits.includes(trait)));
}

function fitsTogether(chosen: readonly Choice[], index: CandidateIndex): boolean {
  return Object.entries(requestOf(chosen).allocations).every(([id, amounts]) =>
    Object.entries(amounts).every(([resourceClass, amount]) => {
      const provider = index.provider(id);
      const inventory = provider?.inventories[resourceClass];
      if (!inventory) return false;
      const capacity = Math.floor((inventory.total - inventory.reserved) * inventory.allocationRatio);
      return amount <= inventory.maxUnit && (provider.used.get(resourceClass) ?? 0) + amount <= capacity;
    }),
  );
}

function policiesHold(chosen: readonly Choice[], { index, question }: Scene): boolean {
  const granular = chosen.filter(({ group }) => group.suffix !== '');
  if (question.groupPolicy === 'isolate' && new Set(granular.map(({ provider }) => provider)).size < granular.length)
    return false;
  const used = [...new Set(chosen.map(({ provider }) => provider))];
  if (!question.nested && index.nested() && new Set(used.map(({ root }) => root)).size < used.length) return false;
  return question.sameSubtree.every((suffixes) => {
    const together = granular.filter(({ group }) => suffixes.includes(group.suffix)).map(({ provider }) => provider);
    return together.some((top) => together.every((each) => pathUp(each, index).includes(top)));
  });
}

function pathUp(provider: CandidateProvider, index: CandidateIndex): CandidateProvider[] {
  const above = provider.parent === null ? undefined : index.provider(provider.parent);
  return [provider, ...(above ? pathUp(above, index) : [])];
}

function requestOf(chosen: readonly Choice[]): CandidateRequest {
  const allocations: Record<string, Record<string, number>> = {};
  const mappings: Record<string, string[]> = {};
  for (const { group, resourceClass, provider } of chosen) {
    const ids = (mappings[group.suffix] ??= []);
    if (!ids.includes(provider.id)) ids.push(provider.id);
    for (const each of resourceClass === undefined ? Object.keys(group.resources) : [resourceClass]) {
      const held = (allocations[provider.id] ??= {});
      held[each] = (held[each] ?? 0) + (group.resources[each] ?? 0);
    }
  }
  return { allocations, mappings };
}
