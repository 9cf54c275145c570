// Changes a part of a resource: reads it, changes it, writes it back, and starts again after a conflict. It never
// overwrites what it has not read.

import { ApiError } from '../api/errors.ts';
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
}

export async function replace<K extends Kind>(
  client: UserClient,
  { kind, name, project, change, labels }: Replacement<K>,
): Promise<ResourceByKind[K]> {
  for (let tries = 1; ; tries++) {
    const current = await client.get(kind, name, project === undefined ? {} : { project });
    const spec = change(current);
    if (spec === undefined) return current;
    const { metadata } = current;
    try {
      return await client.replace(kind, metadata.name, {
        metadata: {
          ...(metadata.project === '' ? {} : { project: metadata.project }),
          labels: labels?.(metadata.labels) ?? metadata.labels,
          revision: metadata.revision,
        },
        spec,
      });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'RevisionMismatch') || tries >= triesMax) throw error;
    }
  }
}
