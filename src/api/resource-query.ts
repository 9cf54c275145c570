// Parses the query string of OpenStack Placement's candidates, as another way to request room. Pure; unknown parameters
// are refused by name. Grammar: docs.openstack.org/api-ref/placement, "List allocation candidates".

import { matches } from './parse.ts';
import { nearest } from './nearest.ts';
import { classFault } from './resource-class.ts';
import { type TraitRules, Trait } from './resources/host-rules.ts';
import { type Amounts, ResourceClass } from './resources/metadata.ts';

/** Amounts and traits of one provider together (`resources1`, `required1`). */
export interface QueryGroup {
  /** `1`, `_gpu`. */
  readonly suffix: string;
  readonly amounts: Amounts;
  readonly traits: TraitRules;
}

export interface ResourceQuery {
  /** From `resources`: each class comes whole from one provider of the host. */
  readonly amounts: Amounts;
  /** From `required` and `root_required`: traits of the host itself. */
  readonly traits: TraitRules;
  /** From `member_of`: UUIDs of aggregates; the host is in one of each list. */
  readonly memberOf?: readonly (readonly string[])[];
  /** From `member_of=!...`: the host is in none of them. */
  readonly notMemberOf?: readonly string[];
  readonly groups: readonly QueryGroup[];
  /** Whether each group needs a provider of its own. */
  readonly isolate: boolean;
  /** Maximum number of candidates. */
  readonly limit?: number;
}

export type ParsedQuery =
  | { readonly ok: true; readonly query: ResourceQuery }
  /** `parameter`: the invalid one, as it was written. */
  | { readonly ok: false; readonly parameter: string; readonly message: string };

const known = ['resources', 'required', 'root_required', 'member_of', 'group_policy', 'limit'] as const;
const amountMax = 2 ** 31 - 1; // as in Placement
const groupsMax = 16;
const aggregateUuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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
}

class Draft {
  readonly #plain: DraftGroup = newGroup();
  readonly #groups = new Map<string, DraftGroup>();
  readonly #memberOf: string[][] = [];
  readonly #notMemberOf: string[] = [];
  #policy: 'none' | 'isolate' | undefined;
  #limit: number | undefined;

  /** Takes a parameter and returns what is wrong with it, or undefined. */
  take(name: string, value: string): string | undefined {
    const [, stem = name, suffix = ''] = /^(resources|required)([a-zA-Z0-9_-]{0,64})$/.exec(name) ?? [];
    switch (stem) {
      case 'resources':
        return this.#resources(this.#group(suffix), value);
      case 'required':
        return takeTraits(this.#group(suffix), value);
      case 'root_required':
        return takeTraits(this.#plain, value);
      case 'member_of':
        return this.#aggregates(value);
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
    for (const [suffix, { amounts }] of this.#groups) {
      if (amounts === null) return fault(`required${suffix}`, `belongs to no group: give resources${suffix} with it`);
    }
    if (this.#groups.size > groupsMax) return fault('resources', `are more than ${groupsMax} groups`);
    if (this.#plain.amounts === null && this.#groups.size === 0)
      return fault('resources', 'is missing: resources=VCPU:1,MEMORY_MB:256');
    if (this.#groups.size > 1 && this.#policy === undefined)
      return fault('group_policy', 'is missing: with more than one numbered group say none or isolate');
    return {
      ok: true,
      query: {
        amounts: this.#plain.amounts ?? {},
        traits: traitsOf(this.#plain),
        ...(this.#memberOf.length === 0 ? {} : { memberOf: this.#memberOf }),
        ...(this.#notMemberOf.length === 0 ? {} : { notMemberOf: this.#notMemberOf }),
        groups: [...this.#groups].map(([suffix, group]) => ({
          suffix,
          amounts: group.amounts ?? {},
          traits: traitsOf(group),
        })),
        isolate: this.#policy === 'isolate',
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

  /** `A`, `in:A,B`: in one of them; `!A`, `!in:A,B`: in none. */
  #aggregates(value: string): string | undefined {
    const list = value.replace(/^!?(in:)?/, '');
    const uuids = list.split(',').map((uuid) => uuid.trim().toLowerCase());
    const wrong = uuids.find((uuid) => !aggregateUuid.test(uuid));
    if (wrong !== undefined) return `must be UUIDs of aggregates; "${shown(wrong)}" is not one`;
    if (uuids.length > 1 && !/^!?in:/.test(value)) return `must begin with in: or !in: before several aggregates`;
    if (value.startsWith('!')) this.#notMemberOf.push(...uuids);
    else this.#memberOf.push(uuids);
    return undefined;
  }

  #resources(group: DraftGroup, value: string): string | undefined {
    if (group.amounts !== null) return 'is given twice';
    const amounts: Record<string, number> = {};
    for (const part of value.split(',')) {
      const [resourceClass = '', amount = '', ...rest] = part.trim().split(':');
      if (!matches(ResourceClass, resourceClass) || rest.length > 0)
        return `must be CLASS:AMOUNT pairs, as VCPU:1,MEMORY_MB:256; "${shown(part)}" is not one`;
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
}

function newGroup(): DraftGroup {
  return { amounts: null, required: [], forbidden: [], anyOf: [] };
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

function traitsOf({ required, forbidden, anyOf }: DraftGroup): TraitRules {
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
