// What a change or a deletion of a pool, an image, a size or a placement group means for what uses it: hosts, instances, workloads and jobs
// that would be against its rules, or could not be placed again. Pure; nothing that runs is stopped by such a change.

import { type ChangeEffect, type Effects, effectsShownMax } from '../../../api/plans/effects.ts';
import type { Group } from '../../../api/resources/group.ts';
import type { Image } from '../../../api/resources/image.ts';
import type { Pool } from '../../../api/resources/pool.ts';
import type { Size } from '../../../api/resources/size.ts';
import { canonicalJson } from '../../../base/json/canonical-json.ts';
import { sha256 } from '../../../base/sha256.ts';
import type { Policy } from '../../state/context.ts';
import type { RecordKind } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { groupEffects } from './group-effects.ts';
import { poolEffects } from './pool-effects.ts';
import { imageNames, type Named, namedEffects } from './named-effects.ts';

export type UsedResource = Pool | Image | Size | Group;

export function isUsed(resource: { readonly kind: RecordKind }): resource is UsedResource {
  const { kind } = resource;
  return kind === 'pool' || kind === 'image' || kind === 'size' || kind === 'group';
}

/** Of more, the count alone is part of the hash: the hash is computed slowly. */
const hashedMax = 1_000;

/** `after`: undefined when it is deleted. */
export function effectsOf(
  snapshot: Snapshot,
  { before, after }: { readonly before: UsedResource; readonly after: UsedResource | undefined },
  policy: Pick<Policy, 'cpuAllocationRatio'>,
): Effects {
  const affected = affectedBy(snapshot, before, after, policy).sort(compare);
  const { id, generation } = before.metadata;
  const count = affected.length;
  const agreed = affected.slice(0, hashedMax).map((effect) => [effect.kind, effect.id, effect.code]);
  const hash = sha256(canonicalJson({ id, generation, deleted: after === undefined, count, agreed })).slice(0, 32);
  return { hash, count, affected: affected.slice(0, effectsShownMax) };
}

function affectedBy(
  snapshot: Snapshot,
  before: UsedResource,
  after: UsedResource | undefined,
  policy: Pick<Policy, 'cpuAllocationRatio'>,
): ChangeEffect[] {
  switch (before.kind) {
    case 'pool':
      return poolEffects(snapshot, { before, after: after?.kind === 'pool' ? after : undefined }, policy);
    case 'group':
      return groupEffects(snapshot, before.metadata, after?.kind === 'group' ? after.spec : undefined);
    case 'image': {
      const left = after?.kind === 'image' ? imageNames(after) : [];
      return namedEffects(snapshot, lost('image', imageNames(before), left));
    }
    case 'size':
      return namedEffects(snapshot, lost('size', [before.metadata.name], after ? [before.metadata.name] : []));
  }
}

function lost(kind: Named['kind'], before: readonly string[], after: readonly string[]): Named {
  return { kind, names: new Set(before.filter((name) => !after.includes(name))) };
}

const kindOrder: readonly ChangeEffect['kind'][] = ['host', 'workload', 'instance', 'job'];

function compare(a: ChangeEffect, b: ChangeEffect): number {
  const [left, right] = [`${a.project}/${a.name}/${a.id}`, `${b.project}/${b.name}/${b.id}`];
  return kindOrder.indexOf(a.kind) - kindOrder.indexOf(b.kind) || (left < right ? -1 : left > right ? 1 : 0);
}

/** For a caller who may not know what others have. */
export function effectsWithoutNames(effects: Effects, knows: (project: string) => boolean): Effects {
  return {
    ...effects,
    affected: effects.affected.map((effect) =>
      effect.kind === 'host' || knows(effect.project) ? effect : { ...effect, name: effect.id, message: effect.code },
    ),
  };
}
