// Changes a part of a resource: reads it, changes it, writes it back, and starts again after a conflict. It never
// overwrites what it has not read.

import { ApiError } from '../api/errors.ts';
import type { RolloutPlan } from '../api/plans/rollout-plan.ts';
import type { Kind, ResourceByKind } from '../api/resources/index.ts';
import type { Labels } from '../api/resources/metadata.ts';
import type { UserClient } from '../api/client/user-client.ts';

/** The status changes often, and every change makes the revision that was read outdated. */
const triesMax = 5;

interface Replacement<K extends Kind> {
  readonly kind: K;
  readonly name: string;
  readonly project?: string;
  /** The wanted spec; undefined: no change needed. An error ends the command. */
  change(current: ResourceByKind[K]): ResourceByKind[K]['spec'] | undefined;
  /** The wanted labels; absent: unchanged. */
  labels?(current: Labels): Labels;
  /** The hash of the plan of this change. */
  readonly apply?: string;
}

export async function replace<K extends Kind>(
  client: UserClient,
  { kind, name, project, change, labels, apply }: Replacement<K>,
): Promise<ResourceByKind[K]> {
  for (let tries = 1; ; tries++) {
    const current = await client.get(kind, name, project === undefined ? {} : { project });
    const spec = change(current);
    if (spec === undefined) return current;
    try {
      const body = changedBody(current, spec, labels);
      return await client.replace(kind, current.metadata.name, body, apply === undefined ? {} : { apply });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'RevisionMismatch') || tries >= triesMax) throw error;
    }
  }
}

/** What `replace` would leave, and the plan of it. */
export async function dryRunOfReplace<K extends Kind>(
  client: UserClient,
  { kind, name, project, change, labels }: Replacement<K>,
): Promise<ResourceByKind[K] & { readonly rollout?: RolloutPlan }> {
  const current = await client.get(kind, name, project === undefined ? {} : { project });
  const spec = change(current) ?? current.spec;
  return client.dryRunOfChange(kind, current.metadata.name, changedBody(current, spec, labels));
}

function changedBody<K extends Kind>(
  { metadata }: ResourceByKind[K],
  spec: ResourceByKind[K]['spec'],
  labels: Replacement<K>['labels'],
) {
  return {
    metadata: {
      ...(metadata.project === '' ? {} : { project: metadata.project }),
      labels: labels?.(metadata.labels) ?? metadata.labels,
      revision: metadata.revision,
    },
    spec,
  };
}
