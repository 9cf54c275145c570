// The query of /allocation_candidates: groups by suffix and what holds for the request as a whole, by version, with the refusals of
// the original.

import { badRequest, placementCodes } from '../../../core/operations/placement/fault.ts';
import type { CandidateGroup, CandidateQuestion } from '../../../core/ledger/candidate-question.ts';
import { isUuidLike, type Schema } from './json-schema.ts';
import { aggregatesIn, amountsIn, eachTraitIn, traitsIn } from './query.ts';
import type { ByVersion } from '../versions.ts';

const text: Schema = { type: 'string' };
const limit: Schema = { type: 'string', pattern: '^[1-9][0-9]*$', minLength: 1 };
const policy: Schema = { type: 'string', enum: ['none', 'isolate'] };
const number = '[1-9][0-9]*';
const word = '[a-zA-Z0-9_-]{1,64}';

function grouped(suffix: string, names: readonly string[], more: Readonly<Record<string, Schema>> = {}): Schema {
  return {
    type: 'object',
    properties: { limit, group_policy: policy, ...more },
    patternProperties: Object.fromEntries(names.map((name) => [`^${name}(${suffix})?$`, text])),
    additionalProperties: false,
  };
}

function plain(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties, required: ['resources'], additionalProperties: false };
}

const granular = ['resources', 'required', 'member_of'];
const withTree = [...granular, 'in_tree'];

export const candidateQuery: ByVersion<Schema> = [
  [10, plain({ resources: text })],
  [16, plain({ resources: text, limit })],
  [17, plain({ resources: text, limit, required: text })],
  [21, plain({ resources: text, limit, required: text, member_of: text })],
  [25, grouped(number, granular)],
  [31, grouped(number, withTree)],
  [33, grouped(word, withTree)],
  [35, grouped(word, withTree, { root_required: text })],
  [36, grouped(word, withTree, { root_required: text, same_subtree: text })],
];

/** `inTree` of the groups is a UUID, not the id of a provider. */
export function candidateQuestion(query: URLSearchParams, version: number): CandidateQuestion {
  const { rootRequired, rootForbidden } = rootTraits(query);
  const sameSubtree = query.getAll('same_subtree').map(subtreeIn);
  const groups = groupsIn(query, version);
  if (version >= 36) assertSuffixes(groups, sameSubtree);
  else assertResources(groups);
  if (version >= 22) assertNoConflict(groups);
  const groupPolicy = query.get('group_policy');
  if (groupPolicy === null && groups.filter(({ suffix }) => suffix !== '').length > 1)
    throw badRequest(
      'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.',
    );
  const most = query.get('limit');
  return {
    groups,
    groupPolicy: groupPolicy === 'isolate' ? 'isolate' : 'none',
    rootRequired,
    rootForbidden,
    sameSubtree,
    ...(most === null ? {} : { limit: Number(most) }),
    nested: version >= 29,
  };
}

function rootTraits(query: URLSearchParams): Pick<CandidateQuestion, 'rootRequired' | 'rootForbidden'> {
  const values = query.getAll('root_required');
  const [value] = values;
  if (value === undefined) return { rootRequired: [], rootForbidden: [] };
  if (values.length > 1)
    throw badRequest("Query parameter 'root_required' may be specified only once.", placementCodes.duplicateKey);
  const { required, forbidden } = eachTraitIn(value);
  const rootRequired = required.flat();
  const both = rootRequired.filter((trait) => forbidden.includes(trait));
  if (both.length > 0)
    throw badRequest(
      `Conflicting required and forbidden traits found in root_required: ${both.join(', ')}`,
      placementCodes.badValue,
    );
  return { rootRequired, rootForbidden: forbidden };
}

function subtreeIn(value: string): string[] {
  const suffixes = value.split(',').map((suffix) => suffix.trim());
  if (suffixes.includes(''))
    throw badRequest(
      'Empty string (unsuffixed group) can not be specified in `same_subtree` ',
      placementCodes.badValue,
    );
  return [...new Set(suffixes)];
}

const groupWithNumber = new RegExp(`^(resources|required|member_of|in_tree)(${number})?$`);
const groupWithWord = new RegExp(`^(resources|required|member_of|in_tree)(${word})?$`);

/** In the order in which the query names them. */
function groupsIn(query: URLSearchParams, version: number): CandidateGroup[] {
  const pattern = version >= 33 ? groupWithWord : groupWithNumber;
  const groups = new Map<string, CandidateGroup>();
  for (const [name, value] of query) {
    const [, what, suffix = ''] = pattern.exec(name) ?? [];
    if (what === undefined) continue;
    const known = groups.get(suffix) ?? { suffix, ...nothing };
    groups.set(suffix, { ...known, ...partOf(what, { value, values: query.getAll(name), suffix, version }) });
  }
  return [...groups.values()];
}

const nothing = { resources: {}, required: [], forbidden: [], memberOf: [], forbiddenAggregates: [] };

interface Value {
  readonly value: string;
  readonly values: readonly string[];
  readonly suffix: string;
  readonly version: number;
}

function partOf(what: string, { value, values, suffix, version }: Value): Partial<CandidateGroup> {
  switch (what) {
    case 'resources':
      return { resources: amountsIn(value) };
    case 'required':
      return traitsIn(values, version);
    case 'member_of': {
      const { memberOf, forbidden } = aggregatesIn(values, version, suffix);
      return { memberOf, forbiddenAggregates: forbidden };
    }
    default: {
      const inTree = value.trim();
      if (isUuidLike(inTree)) return { inTree };
      throw badRequest(
        `Invalid query string parameters: Expected 'in_tree' parameter to be a format of uuid. Got: ${value}`,
      );
    }
  }
}

function hasResources({ resources }: CandidateGroup): boolean {
  return Object.keys(resources).length > 0;
}

/** From 1.36: a group without resources is one of a subtree. */
function assertSuffixes(groups: readonly CandidateGroup[], sameSubtree: readonly (readonly string[])[]): void {
  const named = new Set(sameSubtree.flat());
  const without = groups.filter((group) => !hasResources(group)).map(({ suffix }) => suffix);
  if (without.length === groups.length)
    throw badRequest('There must be at least one resources or resources[$S] parameter.', placementCodes.missingValue);
  const bad = without.filter((suffix) => !named.has(suffix));
  if (bad.length > 0)
    throw badRequest(
      `Resourceless suffixed group request should be specified in \`same_subtree\` query param: bad group(s) - ${listed(bad)}.`,
      placementCodes.badValue,
    );
  const all = groups.map(({ suffix }) => suffix);
  const unreal = [...named].filter((suffix) => !all.includes(suffix));
  if (unreal.length > 0)
    throw badRequest(
      `Real suffixes should be specified in \`same_subtree\`: ${listed(unreal)} not found in ${listed(all)}.`,
      placementCodes.badValue,
    );
}

function listed(words: readonly string[]): string {
  return `[${words.map((each) => `'${each}'`).join(', ')}]`;
}

/** Before 1.36: every group has resources. */
function assertResources(groups: readonly CandidateGroup[]): void {
  const orphans = (name: string, has: (group: CandidateGroup) => boolean) =>
    groups.filter((group) => !hasResources(group) && has(group)).map(({ suffix }) => name + suffix);
  const traits = orphans('required', ({ required }) => required.length > 0);
  if (traits.length > 0)
    throw badRequest(
      `All traits parameters must be associated with resources.  Found the following orphaned traits keys: ${traits.join(', ')}`,
    );
  const aggregates = orphans('member_of', (group) => group.memberOf.length + group.forbiddenAggregates.length > 0);
  if (aggregates.length > 0)
    throw badRequest(
      `All member_of parameters must be associated with resources. Found the following orphaned member_of keys: ${aggregates.join(', ')}`,
    );
  if (!groups.every(hasResources)) throw badRequest('All request groups must specify resources.');
  if (groups.length === 0) throw badRequest('At least one request group (`resources` or `resources{$S}`) is required.');
}

function assertNoConflict(groups: readonly CandidateGroup[]): void {
  const conflicts = groups.flatMap(({ suffix, required, forbidden }) =>
    required
      .filter((any) => any.every((trait) => forbidden.includes(trait)))
      .map((any) => `required${suffix}: (${[...any].sort().join(', ')})`),
  );
  if (conflicts.length > 0)
    throw badRequest(
      `Conflicting required and forbidden traits found in the following traits keys: ${conflicts.sort().join(', ')}`,
    );
}
