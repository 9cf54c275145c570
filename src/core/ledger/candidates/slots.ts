// Slots: the choices of a candidate. A group with a suffix is one slot, filled by one provider; of the group without one,
// each class is a slot. Only here is decided which providers of a tree may fill a slot, each looked at by itself.

import type { Amounts } from '../../../api/resources/metadata.ts';
import type { CandidateGroup, CandidateIndex, CandidateProvider, CandidateQuestion } from '../candidate-question.ts';
import { capacityOf } from '../ledger.ts';
import type { Anchor } from './anchors.ts';

export interface Slot {
  readonly group: CandidateGroup;
  readonly amounts: Amounts;
  /** Providers that may fill it; never empty. */
  readonly options: readonly CandidateProvider[];
}

/** The slots of a question in this tree; null when one of them has no provider. */
export function slotsOf(anchor: Anchor, question: CandidateQuestion, index: CandidateIndex): Slot[] | null {
  const slots: Slot[] = [];
  for (const group of question.groups) {
    for (const amounts of group.suffix === '' ? eachClassOf(group.resources) : [group.resources]) {
      const options = optionsOf(group, amounts, { anchor, index });
      if (options.length === 0) return null;
      slots.push({ group, amounts, options });
    }
  }
  return slots;
}

function eachClassOf(resources: Amounts): Amounts[] {
  return Object.entries(resources).map(([resourceClass, amount]) => ({ [resourceClass]: amount }));
}

interface Place {
  readonly anchor: Anchor;
  readonly index: CandidateIndex;
}

function optionsOf(group: CandidateGroup, amounts: Amounts, place: Place): CandidateProvider[] {
  const { members, sharing } = place.anchor;
  const options: CandidateProvider[] = [];
  for (const provider of members) if (mayFill(provider, group, amounts, place)) options.push(provider);
  for (const provider of sharing) if (mayFill(provider, group, amounts, place)) options.push(provider);
  return options;
}

function mayFill(provider: CandidateProvider, group: CandidateGroup, amounts: Amounts, place: Place): boolean {
  for (const resourceClass in amounts) if (!hasRoom(provider, resourceClass, amounts[resourceClass] ?? 0)) return false;
  if (group.forbidden.some((trait) => provider.traits.includes(trait))) return false;
  if (group.inTree !== undefined && place.index.provider(group.inTree)?.root !== provider.root) return false;
  return group.suffix === '' ? isInAggregates(provider, group, place.anchor) : isAsAsked(provider, group);
}

/** Of the group without a suffix, all providers together have the required traits; of another, its one provider. */
function isAsAsked({ traits, aggregates }: CandidateProvider, group: CandidateGroup): boolean {
  return (
    group.required.every((any) => any.some((trait) => traits.includes(trait))) &&
    group.memberOf.every((any) => any.some((aggregate) => aggregates.includes(aggregate))) &&
    !group.forbiddenAggregates.some((aggregate) => aggregates.includes(aggregate))
  );
}

/** For the group without a suffix, a tree is in the aggregates of its root. What is shared needs to be in them itself. */
function isInAggregates(provider: CandidateProvider, group: CandidateGroup, { root }: Anchor): boolean {
  const isIn = ({ aggregates }: CandidateProvider): boolean =>
    group.memberOf.every((any) => any.some((aggregate) => aggregates.includes(aggregate)));
  const isOut = ({ aggregates }: CandidateProvider): boolean =>
    group.forbiddenAggregates.some((aggregate) => aggregates.includes(aggregate));
  const member = provider.root === root.id;
  return (isIn(provider) || (member && isIn(root))) && !isOut(provider) && !isOut(root);
}

function hasRoom({ inventories, used }: CandidateProvider, resourceClass: string, amount: number): boolean {
  const inventory = inventories[resourceClass];
  if (!inventory) return false;
  if (amount < inventory.minUnit || amount > inventory.maxUnit || amount % inventory.stepSize !== 0) return false;
  return (used.get(resourceClass) ?? 0) + amount <= capacityOf(inventory);
}
