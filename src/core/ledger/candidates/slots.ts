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

/** The slots of a question in any tree. */
export interface SlotAsk {
  readonly group: CandidateGroup;
  readonly amounts: Amounts;
  /** The same as a list: most trees of a full fleet end at the first look. */
  readonly classes: readonly (readonly [resourceClass: string, amount: number])[];
  /** The root of `group.inTree`; null: no such provider, so that nothing fits. */
  readonly tree: string | null | undefined;
}

export function slotsAskedBy({ groups }: CandidateQuestion, index: CandidateIndex): SlotAsk[] {
  return groups.flatMap((group) => {
    const tree = group.inTree === undefined ? undefined : (index.provider(group.inTree)?.root ?? null);
    return (group.suffix === '' ? eachClassOf(group.resources) : [group.resources]).map((amounts) => ({
      group,
      amounts,
      classes: Object.entries(amounts),
      tree,
    }));
  });
}

function eachClassOf(resources: Amounts): Amounts[] {
  return Object.entries(resources).map(([resourceClass, amount]) => ({ [resourceClass]: amount }));
}

/** The slots in this tree; null when one of them has no provider. */
export function slotsIn(anchor: Anchor, asks: readonly SlotAsk[]): Slot[] | null {
  const slots: Slot[] = [];
  for (const ask of asks) {
    const options = optionsOf(ask, anchor);
    if (!options) return null;
    slots.push({ group: ask.group, amounts: ask.amounts, options });
  }
  return slots;
}

function optionsOf(ask: SlotAsk, anchor: Anchor): CandidateProvider[] | null {
  let options: CandidateProvider[] | null = null;
  for (const provider of anchor.members) if (mayFill(provider, ask, anchor)) (options ??= []).push(provider);
  for (const provider of anchor.sharing) if (mayFill(provider, ask, anchor)) (options ??= []).push(provider);
  return options;
}

function mayFill(provider: CandidateProvider, { group, classes, tree }: SlotAsk, anchor: Anchor): boolean {
  if (!hasRoom(provider, classes)) return false;
  if (tree !== undefined && tree !== provider.root) return false;
  if (group.forbidden.some((trait) => provider.traits.includes(trait))) return false;
  return group.suffix === '' ? isInAggregates(provider, group, anchor) : isAsAsked(provider, group);
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
  if (group.memberOf.length === 0 && group.forbiddenAggregates.length === 0) return true;
  const isIn = ({ aggregates }: CandidateProvider): boolean =>
    group.memberOf.every((any) => any.some((aggregate) => aggregates.includes(aggregate)));
  const isOut = ({ aggregates }: CandidateProvider): boolean =>
    group.forbiddenAggregates.some((aggregate) => aggregates.includes(aggregate));
  const member = provider.root === root.id;
  return (isIn(provider) || (member && isIn(root))) && !isOut(provider) && !isOut(root);
}

function hasRoom(provider: CandidateProvider, classes: SlotAsk['classes']): boolean {
  const { inventories, used } = provider;
  for (const [resourceClass, amount] of classes) {
    const inventory = inventories[resourceClass];
    if (!inventory) return false;
    if (amount < inventory.minUnit || amount > inventory.maxUnit || amount % inventory.stepSize !== 0) return false;
    if ((used.get(resourceClass) ?? 0) + amount > capacityOf(inventory)) return false;
  }
  return true;
}
