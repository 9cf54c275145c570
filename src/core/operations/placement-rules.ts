// Whether rules about neighbours are valid: groups that exist, and rules without contradictions. What depends on the
// future (no instance to be near yet, no host with the label) is valid: the instance waits and says why.

import { ApiError } from '../../api/errors.ts';
import { nearest } from '../../api/nearest.ts';
import type { GroupSpec } from '../../api/resources/group.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import type { Labels } from '../../api/resources/metadata.ts';
import { describeSelector, within } from '../scheduler/neighbours/belonging.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

interface Asked {
  readonly project: string;
  readonly labels: Labels;
  readonly placement: InstanceSpec['placement'];
}

/** Throws `InvalidRequest` naming the field. */
export function assertPlacementRules(snapshot: Snapshot, asked: Asked): void {
  assertGroup(snapshot, asked);
  assertWeights(asked.placement);
  assertPeers(asked);
  assertNoContradiction(asked);
}

/** For a placement group. Throws `InvalidRequest` naming the field. */
export function assertPolicy({ affinity, antiAffinity, spread }: GroupSpec): void {
  for (const [name, rule] of Object.entries({ affinity, antiAffinity }))
    if (rule?.required && rule.weight !== undefined) throw weightless(`spec.${name}.weight`);
  if (!affinity?.required) return;
  if (antiAffinity?.required && antiAffinity.by === affinity.by)
    throw invalid('spec.antiAffinity', `members cannot be both together and apart by ${affinity.by}`);
  if (spread?.required && spread.by === affinity.by)
    throw invalid('spec.spread', `members cannot be both together and spread by ${affinity.by}`);
}

function assertGroup(snapshot: Snapshot, { project, placement: { group } }: Asked): void {
  if (group === undefined || snapshot.get('group', keys.group(project, group))) return;
  const known = [...snapshot.list('group')].flatMap(({ value: { metadata } }) =>
    metadata.project === project ? [metadata.name] : [],
  );
  const meant = nearest(group, known);
  throw invalid(
    'spec.placement.group',
    `there is no placement group "${group}" in project ${project}${meant ? `; did you mean "${meant}"?` : '; "berth group ls" lists them'}`,
  );
}

function assertWeights({ affinity, antiAffinity }: Asked['placement']): void {
  for (const [name, rules] of Object.entries({ affinity, antiAffinity })) {
    for (const [i, { required, weight }] of (rules ?? []).entries())
      if (required && weight !== undefined) throw weightless(`spec.placement.${name}[${i}].weight`);
  }
}

/** Rules about peers need a placement group or labels. */
function assertPeers({ labels, placement: { spread, maxPerHost, group } }: Asked): void {
  if (group !== undefined || Object.keys(labels).length > 0) return;
  const lacking = (field: string, more = ''): ApiError =>
    invalid(field, `the rule selects no instances; give this one a label or a placement group${more}`);
  if (maxPerHost !== undefined) throw lacking('spec.placement.maxPerHost');
  for (const [i, { among }] of (spread ?? []).entries())
    if (!among) throw lacking(`spec.placement.spread[${i}].among`, ', or say among which to spread');
}

function assertNoContradiction({ labels, placement: { affinity, antiAffinity, spread, group } }: Asked): void {
  for (const near of affinity ?? []) {
    if (!near.required) continue;
    for (const [i, away] of (antiAffinity ?? []).entries()) {
      // Every instance with the labels of `near` has those of `away` as well.
      if (!away.required || away.by !== near.by || !within(away.to, near.to)) continue;
      throw invalid(
        `spec.placement.antiAffinity[${i}]`,
        `it cannot be both near and away from ${describeSelector({ project: '', labels: near.to })} by ${near.by}`,
      );
    }
    for (const [i, { by, required, among }] of (spread ?? []).entries()) {
      const members = among ?? (group === undefined ? labels : {});
      if (!required || by !== near.by || !within(members, near.to) || !within(near.to, members)) continue;
      throw invalid(
        `spec.placement.spread[${i}]`,
        `${describeSelector({ project: '', labels: near.to })} cannot be both together and spread by ${by}`,
      );
    }
  }
}

function weightless(field: string): ApiError {
  return invalid(field, 'a required rule has no weight; say "required": false, or leave the weight out');
}

function invalid(field: string, message: string): ApiError {
  return new ApiError('InvalidRequest', message, { field });
}
