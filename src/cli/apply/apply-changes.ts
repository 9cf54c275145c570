// Writes what a plan says, one resource after the other. What was changed by others since the plan was made is left alone.

import { ApiError } from '../../api/errors.ts';
import type { AnyResource } from '../../api/resources/index.ts';
import { attempting, CommandError, exitCodes } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { type Change, named } from './apply-plan.ts';
import { fieldChanges } from '../../api/field-changes.ts';

/** A status changes often, and each change makes the revision that was read outdated. */
const triesMax = 5;

export async function applyChange(session: Session, change: Change): Promise<void> {
  const { action, kind, name } = change;
  if (action === 'none') return;
  await attempting(`${action} ${kind} "${name}"`, () => written(session, change));
}

async function written({ client }: Session, change: Change): Promise<void> {
  const { action, kind, name, project, wanted, current } = change;
  const place = project === '' ? {} : { project };
  if (wanted && action === 'create') {
    const { labels, spec } = wanted;
    await client.create(kind, { metadata: { ...named(change), labels }, spec });
  }
  if (!current) return;
  await withRevision(
    current,
    () => client.get(kind, name, place),
    async (revision) => {
      if (action === 'delete') await client.delete(kind, name, { ...place, ifRevision: revision });
      if (action !== 'change' || !wanted) return;
      const { labels, spec } = wanted;
      await client.replace(kind, name, { metadata: { ...place, labels, revision }, spec });
    },
  );
}

/** Again with a newer revision, while only the status has changed. */
async function withRevision(
  planned: AnyResource,
  read: () => Promise<AnyResource>,
  write: (revision: number) => Promise<void>,
): Promise<void> {
  let { revision } = planned.metadata;
  for (let tries = 1; ; tries++) {
    try {
      return await write(revision);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 'RevisionMismatch') || tries >= triesMax) throw error;
    }
    const now = await read();
    if (fieldChanges(asWritten(planned), asWritten(now)).length > 0)
      throw new CommandError(exitCodes.internal, `${planned.kind} "${planned.metadata.name}" was changed meanwhile`, {
        advice: 'run it again to see what it is now',
      });
    revision = now.metadata.revision;
  }
}

/** What users write of it. */
function asWritten({ metadata: { id, labels, deletionRequestedAtMs }, spec }: AnyResource) {
  return { id, labels, deletionRequestedAtMs, spec };
}
