// Whether requirements on hosts are valid: rules without contradictions, amounts that can be divided, known names. A
// requirement that no host meets now is valid as long as a future host may: the instance waits and says why.

import { ApiError } from '../../api/errors.ts';
import { nearest } from '../../api/nearest.ts';
import { parseResourceQuery } from '../../api/resource-query.ts';
import { gpuClass, type Preference, type ScoreWeights, type TraitRules } from '../../api/resources/host-rules.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { type AskingSpec, roomOf } from '../scheduler/demand.ts';
import { describeLabelRule, type LabelRule, wholeNumber } from '../scheduler/label-rule.ts';
import { scoreNames } from '../scheduler/profiles.ts';
import { vocabularyOf } from '../scheduler/vocabulary.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { placementIndexOf } from '../state/views/placement-index.ts';

/** Throws `InvalidRequest` naming the field. */
export function assertHostDemand(snapshot: Snapshot, spec: AskingSpec): void {
  const { placement } = spec;
  assertPoolKnown(snapshot, placement.pool);
  assertDriverKnown(snapshot, placement.driver);
  assertLabelRules(placement);
  assertTraits(placement.traits);
  for (const [i, preference] of (placement.preferences ?? []).entries())
    assertPreference(preference, `spec.placement.preferences[${i}]`);
  for (const [i, { key, value }] of (placement.tolerations ?? []).entries()) {
    if (key === undefined && value !== undefined)
      throw invalid(`spec.placement.tolerations[${i}].key`, 'a toleration with a value needs the key of the taint');
  }
  assertWeightNames(placement.weights, 'spec.placement.weights');
  assertQuery(snapshot, spec);
  assertGpus(spec);
  assertCells(snapshot, spec);
}

/** For a pool or an instance. */
export function assertWeightNames(weights: ScoreWeights | undefined, field: string): void {
  for (const name of Object.keys(weights ?? {})) {
    if (scoreNames.includes(name)) continue;
    const meant = nearest(name, scoreNames);
    const hint = meant ? `did you mean "${meant}"?` : `known: ${scoreNames.join(', ')}`;
    throw invalid(`${field}.${name}`, `there is no score "${name}"; ${hint}`);
  }
}

function assertPoolKnown(snapshot: Snapshot, pool: string | undefined): void {
  if (pool === undefined || snapshot.get('pool', keys.pool(pool))) return;
  const { pools } = vocabularyOf(snapshot);
  if (pools.has(pool)) return;
  const known = [...[...snapshot.list('pool')].map(({ value }) => value.metadata.name), ...pools.keys()];
  const meant = nearest(pool, known);
  throw invalid(
    'spec.placement.pool',
    `there is no pool "${pool}", nor a host in it${meant ? `; did you mean "${meant}"?` : '; "berth pool ls" lists them, "berth pool create" creates one'}`,
  );
}

/** Until the first host registers, the available drivers are unknown. */
function assertDriverKnown(snapshot: Snapshot, driver: string | undefined): void {
  if (driver === undefined) return;
  const { drivers } = vocabularyOf(snapshot);
  if (drivers.size === 0 || drivers.has(driver)) return;
  const meant = nearest(driver, [...drivers.keys()]);
  throw invalid(
    'spec.placement.driver',
    `no host has a driver "${driver}"; ${meant ? `did you mean "${meant}"?` : `they have: ${[...drivers.keys()].sort().join(', ')}`}`,
  );
}

// Labels: what all rules on one key allow together.

interface Bounds {
  /** Undefined: any value. */
  allowed: readonly string[] | undefined;
  absent: boolean;
  present: boolean;
  above: number;
  below: number;
  readonly excluded: string[];
}

function assertLabelRules({ hostLabels, hostRules }: InstanceSpec['placement']): void {
  const byKey = new Map<string, Bounds>();
  for (const [key, value] of Object.entries(hostLabels ?? {}))
    narrow(byKey, { key, operator: 'In', values: [value] }, `spec.placement.hostLabels.${key}`);
  for (const [i, rule] of (hostRules ?? []).entries()) {
    const field = `spec.placement.hostRules[${i}]`;
    assertValues(rule, field);
    narrow(byKey, rule, field);
  }
}

/** The number of values must suit the operator. */
function assertValues({ operator, values = [] }: LabelRule, field: string): void {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) throw invalid(`${field}.values`, `${operator} needs at least one value`);
      return;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) throw invalid(`${field}.values`, `${operator} takes no values`);
      return;
    case 'Gt':
    case 'Lt':
      if (values.length !== 1 || wholeNumber(values[0]) === undefined)
        throw invalid(`${field}.values`, `${operator} needs one whole number`);
  }
}

function narrow(byKey: Map<string, Bounds>, rule: LabelRule, field: string): void {
  const { key, operator, values = [] } = rule;
  let bounds = byKey.get(key);
  if (!bounds) {
    bounds = { allowed: undefined, absent: false, present: false, above: -1, below: Infinity, excluded: [] };
    byKey.set(key, bounds);
  }
  if (operator === 'DoesNotExist') bounds.absent = true;
  else if (operator !== 'NotIn') bounds.present = true;
  const bound = wholeNumber(values[0]) ?? 0;
  if (operator === 'In') bounds.allowed = bounds.allowed?.filter((value) => values.includes(value)) ?? values;
  if (operator === 'NotIn') bounds.excluded.push(...values);
  if (operator === 'Gt') bounds.above = Math.max(bounds.above, bound);
  if (operator === 'Lt') bounds.below = Math.min(bounds.below, bound);
  if (isEmpty(bounds))
    throw invalid(field, `no host can have ${describeLabelRule(rule)} together with the other rules on ${key}`);
}

function isEmpty({ allowed, absent, present, above, below, excluded }: Bounds): boolean {
  if (absent && present) return true;
  if (above + 1 >= below) return true;
  return (
    allowed !== undefined &&
    allowed.every((value) => {
      const number = wholeNumber(value);
      const numeric = above >= 0 || below < Infinity;
      return excluded.includes(value) || (numeric && (number === undefined || number <= above || number >= below));
    })
  );
}

interface Contradiction {
  /** `required[0]`. */
  readonly at: string;
  readonly message: string;
}

function traitContradiction({ required = [], forbidden = [], anyOf = [] }: TraitRules): Contradiction | undefined {
  for (const [i, trait] of required.entries())
    if (forbidden.includes(trait)) return { at: `required[${i}]`, message: `${trait} is both required and forbidden` };
  for (const [i, traits] of anyOf.entries())
    if (traits.every((trait) => forbidden.includes(trait)))
      return { at: `anyOf[${i}]`, message: `every trait of the list is forbidden: ${traits.join(', ')}` };
  return undefined;
}

function assertTraits(traits: TraitRules | undefined): void {
  const found = traits && traitContradiction(traits);
  if (found) throw invalid(`spec.placement.traits.${found.at}`, found.message);
}

function assertPreference({ weight, key, operator, values, trait }: Preference, field: string): void {
  if (weight === 0) throw invalid(`${field}.weight`, 'a preference of weight 0 has no effect');
  if ((key === undefined) === (trait === undefined))
    throw invalid(`${field}.key`, 'a preference needs either a label (key, operator, values) or a trait');
  if (key === undefined) {
    if (operator !== undefined || values !== undefined)
      throw invalid(`${field}.operator`, 'operator and values belong to a key, not to a trait');
    return;
  }
  if (operator === undefined) throw invalid(`${field}.operator`, `${field}.operator is missing`);
  assertValues({ key, operator, values }, field);
}

/** Amounts in the query may not be repeated elsewhere. */
function assertQuery(snapshot: Snapshot, spec: AskingSpec): void {
  const text = spec.placement.query;
  if (text === undefined) return;
  const field = 'spec.placement.query';
  const parsed = parseResourceQuery(text);
  if (!parsed.ok) throw invalid(field, `${field}: ${parsed.parameter} ${parsed.message}`);
  const { query } = parsed;
  if (query.limit !== undefined)
    throw invalid(field, `${field}: limit is for GET /v1/candidates; an instance gets one place`);
  const { traits } = spec.placement;
  const together = {
    required: [...(traits?.required ?? []), ...(query.traits.required ?? [])],
    forbidden: [...(traits?.forbidden ?? []), ...(query.traits.forbidden ?? [])],
    anyOf: query.traits.anyOf ?? [],
  };
  for (const rules of [together, ...query.groups.map((group) => group.traits)]) {
    const found = traitContradiction(rules);
    if (found) throw invalid(field, `${field}: ${found.message}`);
  }
  for (const { memberOf = [], notMemberOf = [] } of [query, ...query.groups]) {
    const none = memberOf.find((any) => any.every((uuid) => notMemberOf.includes(uuid)));
    if (none) throw invalid(field, `${field}: member_of both requires and excludes ${none.join(', ')}`);
  }
  assertTree(snapshot, query.inTree ?? [], field);
  for (const group of query.groups) {
    // The disk has an allocation of its own, for a stopped guest.
    if (group.amounts['DISK_GB'] !== undefined)
      throw invalid(field, `${field}: resources${group.suffix} cannot name DISK_GB; ask for it in resources`);
  }
  const asked = new Set([query.amounts, ...query.groups.map(({ amounts }) => amounts)].flatMap(Object.keys));
  const twice: [string, unknown][] = [
    ['VCPU', spec.cpus],
    ['MEMORY_MB', spec.memoryMiB],
    ['DISK_GB', spec.diskGiB],
    ...Object.entries(spec.resources ?? {}),
    [gpuClass, spec.gpus],
  ];
  for (const [resourceClass, value] of twice)
    if (value !== undefined && asked.has(resourceClass))
      throw invalid(field, `${resourceClass} is requested both by the query and separately; leave one out`);
  if (spec.numaCells !== undefined && (asked.has('VCPU') || asked.has('MEMORY_MB')))
    throw invalid(field, 'with numaCells, CPUs and memory cannot be requested by a query');
}

/** An instance has one host: all trees are that of one host of ours. */
function assertTree(snapshot: Snapshot, uuids: readonly string[], field: string): void {
  if (uuids.length === 0) return;
  const index = placementIndexOf(snapshot);
  const hosts = new Set<string>();
  for (const uuid of uuids) {
    const provider = index.provider(index.idOf(uuid) ?? '');
    if (!provider)
      throw invalid(
        field,
        `${field}: in_tree names ${uuid}, which is no resource provider; "berth ledger ls" lists them`,
      );
    if (provider.outside)
      throw invalid(
        field,
        `${field}: in_tree names the outside provider "${provider.outside.name}", where no instance is placed; name a provider of a host`,
      );
    hosts.add(provider.host);
  }
  if (hosts.size > 1)
    throw invalid(field, `${field}: in_tree names providers of ${[...hosts].join(' and ')}; an instance has one host`);
}

function assertGpus({ gpus, resources }: AskingSpec): void {
  if (!gpus) return;
  if (gpus.share !== undefined && gpus.count !== 1)
    throw invalid('spec.gpus.share', `a share is of one GPU; the count must be 1, not ${gpus.count}`);
  if (resources?.[gpuClass] !== undefined)
    throw invalid(
      `spec.resources.${gpuClass}`,
      `${gpuClass} is requested both by spec.gpus and separately; leave one out`,
    );
}

function assertCells(snapshot: Snapshot, spec: AskingSpec): void {
  const cells = spec.numaCells;
  if (cells === undefined) return;
  const { cpus, memoryMiB } = roomOf(snapshot, spec);
  if (cpus % cells !== 0)
    throw invalid('spec.numaCells', `${cpus} CPUs cannot be shared out evenly over ${cells} cells`);
  if (memoryMiB % cells !== 0)
    throw invalid('spec.numaCells', `${memoryMiB} MiB of memory cannot be shared out evenly over ${cells} cells`);
}

function invalid(field: string, message: string): ApiError {
  return new ApiError('InvalidRequest', message, { field });
}
