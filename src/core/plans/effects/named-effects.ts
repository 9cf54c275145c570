// What loses an image or a size by its name: what is placed keeps its place and what it holds, and cannot be placed again.

import { isFinal } from '../../../api/resources/job.ts';
import type { ChangeEffect } from '../../../api/plans/effects.ts';
import type { Image } from '../../../api/resources/image.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { effect } from './effect.ts';

export interface Named {
  readonly kind: 'image' | 'size';
  /** Those that are gone afterwards. */
  readonly names: ReadonlySet<string>;
}

/** Its name and its aliases. */
export function imageNames({ metadata, spec }: Image): string[] {
  return [metadata.name, ...spec.aliases];
}

export function namedEffects(snapshot: Snapshot, lost: Named): ChangeEffect[] {
  if (lost.names.size === 0) return [];
  const affected: ChangeEffect[] = [];
  for (const { value } of snapshot.list('instance')) {
    if (value.metadata.deletionRequestedAtMs !== undefined || !names(value.spec, lost)) continue;
    const message =
      value.status.host === undefined
        ? `it waits, and could not be placed without its ${lost.kind}`
        : `it stays as it is, and could not be placed again without its ${lost.kind}`;
    affected.push(effect(value, 'CannotPlace', message));
  }
  for (const { value } of snapshot.list('workload'))
    if (value.metadata.deletionRequestedAtMs === undefined && names(value.spec.template.spec, lost))
      affected.push(effect(value, 'CannotReplace', `it could create no more copies without its ${lost.kind}`));
  for (const { value } of snapshot.list('job')) {
    const { image, label, size } = value.spec;
    const named = lost.kind === 'size' ? size : (image ?? label);
    if (!isFinal(value.status.phase) && named !== undefined && lost.names.has(named))
      affected.push(effect(value, 'CannotPlace', `it could make no further attempt without its ${lost.kind}`));
  }
  return affected;
}

function names({ image, size, containers = [] }: InstanceSpec, lost: Named): boolean {
  if (lost.kind === 'size') return size !== undefined && lost.names.has(size);
  return lost.names.has(image) || containers.some((one) => one.image !== undefined && lost.names.has(one.image));
}
