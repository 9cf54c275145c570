// What files would change: each resource is compared with what the server would make of it, which also checks it. Nothing is written.

import { ApiError } from '../../api/errors.ts';
import { type AnyResource, type Kind, resourceDefinitions } from '../../api/resources/index.ts';
import type { Effects } from '../../api/plans/effects.ts';
import type { RolloutPlan } from '../../api/plans/rollout-plan.ts';
import { isUsedKind } from '../../api/plans/used-kinds.ts';
import { listAll } from '../print/follow.ts';
import type { Session } from '../session.ts';
import { inOrder } from './apply-order.ts';
import type { WantedResource } from './documents.ts';
import { type FieldChange, fieldChanges } from '../../api/field-changes.ts';

export interface Change {
  readonly action: 'create' | 'change' | 'delete' | 'none';
  readonly kind: Kind;
  readonly name: string;
  readonly project: string;
  readonly fields: readonly FieldChange[];
  /** Absent for what is deleted. */
  readonly wanted?: WantedResource;
  /** What it is now; absent for what is created. */
  readonly current?: AnyResource;
  /** Of a change or a deletion: what would no longer fit. */
  readonly effects?: Effects;
  /** Of a change of a workload: what happens to its copies. */
  readonly rollout?: RolloutPlan;
  /** It names something that is created before it: the server checks it then. */
  readonly checkedLater?: true;
}

export interface Refused {
  readonly wanted: WantedResource;
  readonly error: ApiError;
}

export interface ApplyPlan {
  /** In the order in which they are made. */
  readonly changes: readonly Change[];
  readonly refused: readonly Refused[];
}

export interface PruneOptions {
  /** Labels of what may be deleted. */
  readonly selector: string;
}

export async function planApply(
  session: Session,
  wanted: readonly WantedResource[],
  prune: PruneOptions | undefined,
): Promise<ApplyPlan> {
  const changes: Change[] = [];
  const refused: Refused[] = [];
  for (const one of inOrder(wanted)) {
    try {
      changes.push(await changeOf(session, one));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 'Unavailable' || error.code === 'Unauthenticated') throw error;
      const isNamed = ({ action, name }: Change): boolean => action === 'create' && error.message.includes(`"${name}"`);
      if (changes.some(isNamed)) changes.push({ ...created(one), checkedLater: true });
      else refused.push({ wanted: one, error });
    }
  }
  if (prune) changes.push(...(await pruned(session, wanted, prune)));
  return { changes, refused };
}

async function changeOf(session: Session, wanted: WantedResource): Promise<Change> {
  const { kind, name, project, labels, spec } = wanted;
  const { client } = session;
  const current = await currentOf(session, wanted);
  const body = { metadata: { ...named(wanted), labels }, spec };
  if (current === undefined) {
    const planned: AnyResource = await client.dryRun(kind, body);
    return { ...created(wanted), fields: namedFields(wanted, planned) };
  }
  const planned: AnyResource & Pick<Change, 'effects' | 'rollout'> = await client.dryRunOfChange(kind, name, {
    metadata: { ...(project === '' ? {} : { project }), labels },
    spec,
  });
  const fields = changedFields(current, planned);
  const action = fields.length > 0 ? 'change' : 'none';
  const rollout = action === 'change' && planned.rollout ? { rollout: planned.rollout } : {};
  return { action, kind, name, project, fields, wanted, current, ...effectsOf(planned), ...rollout };
}

function effectsOf({ effects }: { readonly effects?: Effects }): { readonly effects?: Effects } {
  return effects && effects.count > 0 ? { effects } : {};
}

async function currentOf(
  { client }: Session,
  { kind, name, project }: Pick<WantedResource, 'kind' | 'name' | 'project'>,
): Promise<AnyResource | undefined> {
  try {
    const current: AnyResource = await client.get(kind, name, project === '' ? {} : { project });
    return current.metadata.name === name ? current : undefined; // a name may look like the id of another
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NotFound') return undefined;
    throw error;
  }
}

/** Values that the server hides differ when it says that the spec would change. */
function changedFields(current: AnyResource, planned: AnyResource): readonly FieldChange[] {
  const fields = [
    ...fieldChanges(current.metadata.labels, planned.metadata.labels, 'labels'),
    ...fieldChanges(current.spec, planned.spec),
  ];
  const specChanges = planned.metadata.generation !== current.metadata.generation;
  return fields.length === 0 && specChanges ? [{ field: 'hidden values' }] : fields;
}

export function named({ name, project }: Pick<WantedResource, 'name' | 'project'>): { name: string; project?: string } {
  return project === '' ? { name } : { name, project };
}

function created(wanted: WantedResource): Change {
  const { kind, name, project } = wanted;
  return { action: 'create', kind, name, project, fields: [], wanted };
}

/** Without defaults, and as the server shows them: it hides what is secret. */
function namedFields({ spec }: WantedResource, planned: AnyResource): readonly FieldChange[] {
  return fieldChanges({}, Object.fromEntries(Object.entries(planned.spec).filter(([field]) => field in spec)));
}

/** What has these labels, is of a kind and project of the files, and stands in none. */
async function pruned(
  session: Session,
  wanted: readonly WantedResource[],
  { selector }: PruneOptions,
): Promise<readonly Change[]> {
  const kept = new Set(wanted.map(({ kind, project, name }) => `${kind}/${project}/${name}`));
  const places = new Map(wanted.map(({ kind, project }) => [`${kind}/${project}`, { kind, project }]));
  const changes: Change[] = [];
  for (const { kind, project } of places.values()) {
    const { verbs }: { verbs: readonly string[] } = resourceDefinitions[kind];
    if (!verbs.includes('delete') || kind === 'host') continue;
    const { items }: { items: AnyResource[] } = await listAll(session.client, kind, {
      ...(project === '' ? {} : { project }),
      selector,
    });
    for (const current of items) {
      const { name, deletionRequestedAtMs } = current.metadata;
      if (kept.has(`${kind}/${project}/${name}`) || deletionRequestedAtMs !== undefined) continue;
      const affecting = isUsedKind(kind)
        ? await session.client.dryRunOfDelete(kind, name, project === '' ? {} : { project })
        : {};
      changes.push({ action: 'delete', kind, name, project, fields: [], current, ...effectsOf(affecting) });
    }
  }
  return inOrder(changes).toReversed();
}
