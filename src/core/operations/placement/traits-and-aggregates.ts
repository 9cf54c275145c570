// Traits and aggregates of any provider, hosts of ours included: both only describe it.

import { equalJson } from '../../../base/equal-json.ts';
import { keys } from '../../state/keys.ts';
import type { Plan } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { ownAggregates } from './aggregates-of.ts';
import { Draft } from './draft.ts';
import { badRequest, conflict, placementCodes } from './fault.ts';
import { isKnownName } from './names.ts';
import { providerOf } from './providers.ts';

export const generationPassed = () =>
  conflict(
    "Resource provider's generation already changed. Please update the generation and try again.",
    placementCodes.concurrentUpdate,
  );

/** `generation` undefined: whatever it is. */
export function setTraits(
  snapshot: Snapshot,
  asked: { readonly uuid: string; readonly traits: readonly string[]; readonly generation: number | undefined },
): { plan: Plan; id: string } {
  const provider = providerOf(snapshot, asked.uuid);
  if (asked.generation !== undefined && asked.generation !== provider.generation) throw generationPassed();
  const unknown = [...new Set(asked.traits)].filter((name) => !isKnownName(snapshot, 'trait', name));
  if (unknown.length > 0) throw badRequest(`No such trait ${unknown.join(', ')}`);
  const traits = [...new Set(asked.traits)].sort();
  const draft = new Draft(snapshot);
  if (!equalJson(traits, [...provider.traits].sort())) {
    for (const name of traits)
      if (!provider.traits.includes(name)) draft.touch('placementName', keys.placementName('trait', name));
    draft.setProvider(provider.id, { traits });
    draft.countOn(provider.id);
  }
  return { plan: draft.plan(), id: provider.id };
}

/** `generation` undefined: as before version 1.19, which neither asks for it nor counts it on. */
export function setAggregates(
  snapshot: Snapshot,
  asked: { readonly uuid: string; readonly aggregates: readonly string[]; readonly generation: number | undefined },
): { plan: Plan; id: string } {
  const provider = providerOf(snapshot, asked.uuid);
  const { id, generation } = provider;
  if (asked.generation !== undefined && asked.generation !== generation) throw generationPassed();
  const draft = new Draft(snapshot);
  draft.setProvider(id, { aggregates: ownAggregates(snapshot, provider, asked.aggregates) });
  if (asked.generation !== undefined) draft.countOn(id);
  return { plan: draft.plan(), id };
}
