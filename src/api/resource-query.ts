// Parses the query string of OpenStack Placement's candidates, as another way to request room. Pure; unknown parameters
// are refused by name. Grammar: docs.openstack.org/api-ref/placement, "List allocation candidates".

import { matches } from './parse.ts';
import { nearest } from './nearest.ts';
import { classFault } from './resource-class.ts';
import { type TraitRules, Trait } from './resources/host-rules.ts';
import { type Amounts, ResourceClass } from './resources/metadata.ts';

/** UUIDs of aggregates: one of each list, and none of the others. */
export interface QueryAggregates {
  /** From `member_of`. */
  readonly memberOf?: readonly (readonly string[])[];
  /** From `member_of=!...`. */
  readonly notMemberOf?: readonly string[];
}

/** Amounts, traits and aggregates of one provider together (`resources1`, `required1`, `member_of1`). */
export interface QueryGroup extends QueryAggregates {
  /** `1`, `_gpu`. */
  readonly suffix: string;
  /** Empty only in a group that `same_subtree` names. */
  readonly amounts: Amounts;
  readonly traits: TraitRules;
}

export interface ResourceQuery extends QueryAggregates {
  /** From `resources`: each class comes whole from one provider of the host. */
  readonly amounts: Amounts;
  /** From `required` and `root_required`: traits of the host itself. */
  readonly traits: TraitRules;
  readonly groups: readonly QueryGroup[];
  /** Whether each group needs a provider of its own. */
  readonly isolate: boolean;
  /** From `in_tree` with any suffix: UUIDs of providers of the host, since all groups get providers of one host. */
  readonly inTree?: readonly string[];
  /** Suffixes: of each list, the provider of one group is the same as, or above, those of the others. */
  readonly sameSubtree?: readonly (readonly string[])[];
  /** Maximum number of candidates. */
  readonly limit?: number;
}

export type ParsedQuery =
  | { readonly ok: true; readonly query: ResourceQuery }
  /** `parameter`: the invalid one, as it was written. */
  | { readonly ok: false; readonly parameter: string; readonly message: string };

const known = [
  ...['resources', 'required', 'root_required', 'member_of', 'in_tree'],
  ...['group_policy', 'same_subtree', 'limit'],
] as const;
const amountMax = 2 ** 31 - 1; // as in Placement
const groupsMax = 16;
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** `resources=VCPU:1,MEMORY_MB:256&required=HW_CPU_X86_AVX2,!CUSTOM_SLOW`, with or without a leading `?`. */
export function parseResourceQuery(text: string): ParsedQuery {
  const draft = new Draft();
  for (const [name, value] of new URLSearchParams(text.replace(/^\?/, ''))) {
    const fault = draft.take(name, value);
    if (fault !== undefined) return { ok: false, parameter: name.slice(0, 64), message: fault };
  }
  return draft.end();
}

interface DraftGroup {
  amounts: Record<string, number> | null;
  readonly required: string[];
  readonly forbidden: string[];
  readonly anyOf: string[][];
  readonly memberOf: string[][];
  readonly notMemberOf: string[];
  inTree: string | null;
}

class Draft {
  readonly #plain: DraftGroup = newGroup();
  readonly #groups = new Map<string, DraftGroup>();
  readonly #sameSubtree: string[][] = [];
  #root = false;
  #policy: 'none' | 'isolate' | undefined;
  #limit: number | undefined;

  /** Takes a parameter and returns what is wrong with it, or undefined. */
  take(name: string, value: string): string | undefined {
    const [, stem = name, suffix = ''] =
      /^(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{0,64})$/.exec(name) ?? [];
    switch (stem) {
      case 'resources':
        return takeResources(this.#group(suffix), value);
      case 'required':
        return takeTraits(this.#group(suffix), value);
      case 'member_of':
        return takeAggregates(this.#group(suffix), value);
      case 'in_tree':
        return takeTree(this.#group(suffix), value);
      case 'root_required':
        if (this.#root) return 'is given twice';
        this.#root = true;
        if (value.startsWith('in:')) return 'cannot use in:; list required traits as T and forbidden ones as !T';
        return takeTraits(this.#plain, value);
      case 'same_subtree':
        return this.#subtree(value);
      case 'group_policy':
        if (value !== 'none' && value !== 'isolate') return `must be none or isolate, not "${shown(value)}"`;
        if (this.#policy !== undefined) return 'is given twice';
        this.#policy = value;
        return undefined;
      case 'limit':
        if (!/^[1-9]\d{0,5}$/.test(value)) return `must be a whole number from 1 to 999999, not "${shown(value)}"`;
        if (this.#limit !== undefined) return 'is given twice';
        this.#limit = Number(value);
        return undefined;
      default: {
        const meant = nearest(name, known);
        return `is not understood here; ${meant === undefined ? `known: ${known.join(', ')}, and resources1, required1, ...` : `did you mean "${meant}"?`}`;
      }
    }
  }

  end(): ParsedQuery {
    const together = new Set(this.#sameSubtree.flat());
    for (const [suffix, group] of this.#groups) {
      if (group.amounts !== null || together.has(suffix)) continue;
      const named = parameterOf(group) + suffix;
      return fault(named, `belongs to no group: add resources${suffix}, or name ${suffix} in same_subtree`);
    }
    for (const suffix of together)
      if (!this.#groups.has(suffix))
        return fault('same_subtree', `names "${shown(suffix)}", but no group has this suffix`);
    if (this.#groups.size > groupsMax) return fault('resources', `are more than ${groupsMax} groups`);
    if (this.#plain.amounts === null && ![...this.#groups.values()].some(({ amounts }) => amounts !== null))
      return fault('resources', 'is missing: resources=VCPU:1,MEMORY_MB:256');
    if (this.#groups.size > 1 && this.#policy === undefined)
      return fault('group_policy', 'is missing: with more than one numbered group say none or isolate');
    const inTree = [this.#plain, ...this.#groups.values()].flatMap(({ inTree: uuid }) => uuid ?? []);
    return {
      ok: true,
      query: {
        amounts: this.#plain.amounts ?? {},
        traits: traitsOf(this.#plain),
        ...aggregatesOf(this.#plain),
        groups: [...this.#groups].map(([suffix, group]) => ({
          suffix,
          amounts: group.amounts ?? {},
          traits: traitsOf(group),
          ...aggregatesOf(group),
        })),
        isolate: this.#policy === 'isolate',
        ...(inTree.length === 0 ? {} : { inTree: [...new Set(inTree)] }),
        ...(this.#sameSubtree.length === 0 ? {} : { sameSubtree: this.#sameSubtree }),
        ...(this.#limit === undefined ? {} : { limit: this.#limit }),
      },
    };
  }

  #group(suffix: string): DraftGroup {
    if (suffix === '') return this.#plain;
    let group = this.#groups.get(suffix);
    if (!group) this.#groups.set(suffix, (group = newGroup()));
    return group;
  }

  #subtree(value: string): string | undefined {
    const suffixes = value.split(',').map((suffix) => suffix.trim());
    if (suffixes.includes('')) return 'must name groups by their suffixes, as same_subtree=_a,_b';
    this.#sameSubtree.push([...new Set(suffixes)]);
    return undefined;
  }
}

function takeResources(group: DraftGroup, value: string): string | undefined {
  if (group.amounts !== null) return 'is given twice';
  const amounts: Record<string, number> = {};
  for (const part of value.split(',')) {
    const [resourceClass = '', amount = '', ...rest] = part.trim().split(':');
    if (!matches(ResourceClass, resourceClass) || rest.length > 0)
      return `must be CLASS:AMOUNT pairs, for example VCPU:1,MEMORY_MB:256; "${shown(part)}" is not one`;
    const unknown = classFault(resourceClass);
    if (unknown !== undefined) return `cannot be "${shown(part)}": ${unknown}`;
    if (!/^[1-9]\d{0,9}$/.test(amount) || Number(amount) > amountMax)
      return `must give ${resourceClass} as a whole number from 1 to ${amountMax}, not "${shown(amount)}"`;
    if (Object.hasOwn(amounts, resourceClass)) return `names ${resourceClass} twice`;
    amounts[resourceClass] = Number(amount);
  }
  group.amounts = amounts;
  return undefined;
}

function newGroup(): DraftGroup {
  return { amounts: null, required: [], forbidden: [], anyOf: [], memberOf: [], notMemberOf: [], inTree: null };
}

/** `T1,!T2`: all of them; `in:T1,T2`: one of them. */
function takeTraits(group: DraftGroup, value: string): string | undefined {
  const anyOf = value.startsWith('in:');
  const words = (anyOf ? value.slice(3) : value).split(',').map((word) => word.trim());
  const chosen: string[] = [];
  for (const word of words) {
    const forbidden = word.startsWith('!');
    const trait = forbidden ? word.slice(1) : word;
    if (!matches(Trait, trait)) return `must be traits in capitals, as HW_CPU_X86_AVX2; "${shown(word)}" is not one`;
    if (anyOf && forbidden) return `cannot forbid "${shown(trait)}" within in:`;
    if (anyOf) chosen.push(trait);
    else (forbidden ? group.forbidden : group.required).push(trait);
  }
  if (anyOf) group.anyOf.push(chosen);
  return undefined;
}

/** `A`, `in:A,B`: in one of them; `!A`, `!in:A,B`: in none. */
function takeAggregates(group: DraftGroup, value: string): string | undefined {
  const uuids = value
    .replace(/^!?(in:)?/, '')
    .split(',')
    .map((uuid) => uuid.trim().toLowerCase());
  const wrong = uuids.find((uuid) => !uuidPattern.test(uuid));
  if (wrong !== undefined) return `must be UUIDs of aggregates; "${shown(wrong)}" is not one`;
  if (uuids.length > 1 && !/^!?in:/.test(value)) return `must begin with in: or !in: before several aggregates`;
  if (value.startsWith('!')) group.notMemberOf.push(...uuids);
  else group.memberOf.push(uuids);
  return undefined;
}

function takeTree(group: DraftGroup, value: string): string | undefined {
  const uuid = value.trim().toLowerCase();
  if (!uuidPattern.test(uuid)) return `must be the UUID of a provider; "${shown(value)}" is not one`;
  if (group.inTree !== null) return 'is given twice';
  group.inTree = uuid;
  return undefined;
}

/** What was given of a group without amounts. */
function parameterOf({ memberOf, notMemberOf, inTree, ...traits }: DraftGroup): string {
  if (Object.keys(traitsOf(traits)).length > 0) return 'required';
  if (memberOf.length + notMemberOf.length > 0) return 'member_of';
  return inTree === null ? 'required' : 'in_tree';
}

function aggregatesOf({ memberOf, notMemberOf }: DraftGroup): QueryAggregates {
  return { ...(memberOf.length === 0 ? {} : { memberOf }), ...(notMemberOf.length === 0 ? {} : { notMemberOf }) };
}

function traitsOf({ required, forbidden, anyOf }: Pick<DraftGroup, 'required' | 'forbidden' | 'anyOf'>): TraitRules {
  return {
    ...(required.length === 0 ? {} : { required }),
    ...(forbidden.length === 0 ? {} : { forbidden }),
    ...(anyOf.length === 0 ? {} : { anyOf }),
  };
}

function fault(parameter: string, message: string): ParsedQuery {
  return { ok: false, parameter, message };
}

function shown(text: string): string {
  return text.slice(0, 40).replace(/[^\x20-\x7e]/g, '?');
}
