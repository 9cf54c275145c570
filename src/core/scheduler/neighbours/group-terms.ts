// Group terms: what a request asks about the location of other instances, with the policy of its placement group and
// all defaults resolved.

import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Metadata } from '../../../api/resources/metadata.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { keys } from '../../state/keys.ts';
import type { Selector } from './belonging.ts';

/** At most `max` other members where it is placed: on the host, or in the same domain of a host label. */
export interface LimitTerm {
  readonly kind: 'limit';
  readonly members: Selector;
  /** `host`, or the key of a host label. */
  readonly by: string;
  readonly max: number;
}

/** Near to the members, or away from them. */
export interface AffinityTerm {
  readonly kind: 'affinity' | 'antiAffinity';
  readonly members: Selector;
  readonly by: string;
  readonly required: boolean;
  /** 1..100, when not required. */
  readonly weight: number;
}

/** Members spread evenly over the domains, with a skew of at most `maxSkew`. */
export interface SpreadTerm {
  readonly kind: 'spread';
  readonly members: Selector;
  readonly by: string;
  readonly maxSkew: number;
  readonly required: boolean;
}

/** The placement group no longer exists: no host can take the instance. */
export interface MissingGroupTerm {
  readonly kind: 'missingGroup';
  readonly placementGroup: string;
}

export type GroupTerm = LimitTerm | AffinityTerm | SpreadTerm | MissingGroupTerm;

const noTerms: readonly GroupTerm[] = [];
const weightMax = 100;

interface Asked {
  readonly metadata: Pick<Metadata, 'project' | 'labels'>;
  readonly spec: Pick<InstanceSpec, 'placement'>;
}

export function groupTermsOf(snapshot: Snapshot, { metadata, spec: { placement } }: Asked): readonly GroupTerm[] {
  const { affinity, antiAffinity, spread, maxPerHost, group } = placement;
  if (!affinity && !antiAffinity && !spread && maxPerHost === undefined && group === undefined) return noTerms;
  const { project, labels } = metadata;
  const terms: GroupTerm[] = [];
  for (const { to, by, required, weight = weightMax } of affinity ?? [])
    terms.push({ kind: 'affinity', members: { project, labels: to }, by, required, weight });
  for (const { to, by, required, weight = weightMax } of antiAffinity ?? [])
    terms.push({ kind: 'antiAffinity', members: { project, labels: to }, by, required, weight });
  const peers: Selector = group === undefined ? { project, labels } : { project, labels: {}, placementGroup: group };
  for (const { by, maxSkew, required, among } of spread ?? [])
    terms.push({ kind: 'spread', members: among ? { project, labels: among } : peers, by, maxSkew, required });
  if (maxPerHost !== undefined) terms.push({ kind: 'limit', members: peers, by: 'host', max: maxPerHost - 1 });
  if (group !== undefined) terms.push(...policyOf(snapshot, peers, group));
  return terms;
}

function policyOf(snapshot: Snapshot, members: Selector, placementGroup: string): GroupTerm[] {
  const policy = snapshot.get('group', keys.group(members.project, placementGroup))?.value.spec;
  if (!policy) return [{ kind: 'missingGroup', placementGroup }];
  const { affinity, antiAffinity, spread, maxPerHost } = policy;
  return [
    ...(affinity ? [{ kind: 'affinity' as const, members, ...affinity, weight: affinity.weight ?? weightMax }] : []),
    ...(antiAffinity
      ? [{ kind: 'antiAffinity' as const, members, ...antiAffinity, weight: antiAffinity.weight ?? weightMax }]
      : []),
    ...(spread ? [{ kind: 'spread' as const, members, ...spread }] : []),
    ...(maxPerHost === undefined ? [] : [{ kind: 'limit' as const, members, by: 'host', max: maxPerHost - 1 }]),
  ];
}
