// Belonging: what makes an instance a member of groups, and how groups are named. Plain data and comparisons; this file
// counts nothing.

import type { Instance } from '../../../api/resources/instance.ts';
import type { Labels } from '../../../api/resources/metadata.ts';

/**
 * Selects instances of a project: those with all the labels, or those of a placement group. Empty labels select none.
 */
export interface Selector {
  readonly project: string;
  readonly labels: Labels;
  readonly placementGroup?: string;
}

/** No matching instance may be placed where this one is: on its host, or in the same domain of a host label. */
export interface Repulsion {
  readonly members: Selector;
  readonly by: string;
}

/** What other instances see of an instance. */
export interface Belonging {
  readonly project: string;
  readonly labels: Labels;
  readonly placementGroup?: string | undefined;
  /** Its own required anti-affinity, which also holds for instances that are placed later. Absent: none. */
  readonly repels?: readonly Repulsion[] | undefined;
}

/** The key of a tag for a placement group; no label starts like this. */
export const groupTag = '@';

export function belongingOf({
  metadata: { project, labels },
  spec: { placement },
}: {
  readonly metadata: Pick<Instance['metadata'], 'project' | 'labels'>;
  readonly spec: Pick<Instance['spec'], 'placement'>;
}): Belonging {
  const required = placement.antiAffinity?.filter((rule) => rule.required);
  return {
    project,
    labels,
    placementGroup: placement.group,
    ...(required === undefined || required.length === 0
      ? {}
      : { repels: required.map(({ to, by }) => ({ members: { project, labels: to }, by })) }),
  };
}

/** The host that an instance counts on: where it runs, will run or is stopped; not where it failed or ended. */
export function placeOf({ status }: Instance): string | undefined {
  return status.phase === 'Failed' || status.phase === 'Exited' ? undefined : status.host;
}

export function isMember(selector: Selector, belonging: Belonging): boolean {
  if (selector.project !== belonging.project) return false;
  const { placementGroup, labels } = selector;
  if (placementGroup !== undefined && placementGroup !== belonging.placementGroup) return false;
  let any = placementGroup !== undefined;
  for (const key in labels) {
    if (!Object.hasOwn(belonging.labels, key) || belonging.labels[key] !== labels[key]) return false;
    any = true;
  }
  return any;
}

export function sameSelector(a: Selector, b: Selector): boolean {
  return (
    a === b ||
    (a.project === b.project &&
      a.placementGroup === b.placementGroup &&
      within(a.labels, b.labels) &&
      within(b.labels, a.labels))
  );
}

/** Whether `b` has every label of `a`. */
export function within(a: Labels, b: Labels): boolean {
  if (a === b) return true;
  for (const key in a) if (!Object.hasOwn(b, key) || b[key] !== a[key]) return false;
  return true;
}

/** `app=web,tier=db`, `placement group db`. */
export function describeSelector({ labels, placementGroup }: Selector): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return [...(placementGroup === undefined ? [] : [`placement group ${placementGroup}`]), pairs.join(',')]
    .filter((part) => part !== '')
    .join(' with ');
}

/**
 * The tag of the selector: equal for equal selectors, and every member has it. Undefined for a selector that selects
 * none.
 */
export function tagOf({
  labels,
  placementGroup,
}: Selector): { readonly key: string; readonly value: string } | undefined {
  if (placementGroup !== undefined) return { key: groupTag, value: placementGroup };
  let first: string | undefined;
  for (const key in labels) if (first === undefined || key < first) first = key;
  return first === undefined ? undefined : { key: first, value: labels[first] ?? '' };
}
