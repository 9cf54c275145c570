// The change that writes an event beside the change it describes.

import type { AnyResource } from '../../api/resources/index.ts';
import { schemaVersion } from './upgrade.ts';
import type { Context } from './context.ts';
import { keys } from './keys.ts';
import type { Change } from './plan.ts';

export interface NewEvent {
  readonly type?: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly host?: string;
}

/** Shared by all events: a hundred thousand of them are in memory. */
const nothing = Object.freeze({});

/** Event names sort by time, so a list is a history. */
export function eventChange(subject: AnyResource, event: NewEvent, ctx: Context): Change {
  const id = ctx.newId('evt');
  const { metadata } = subject;
  const project = metadata.project || 'default';
  return {
    key: keys.event(project, id),
    ifRevision: 0,
    value: {
      kind: 'event',
      schemaVersion,
      metadata: {
        ...{ id, name: id, project, revision: 0, generation: 1, labels: nothing, createdAtMs: ctx.nowMs },
        ...(metadata.traceParent === undefined ? {} : { traceParent: metadata.traceParent }),
      },
      spec: {
        subject: { kind: subject.kind, id: metadata.id, name: metadata.name, project: metadata.project },
        type: event.type ?? 'Normal',
        reason: event.reason,
        message: event.message,
        ...(event.host === undefined ? {} : { host: event.host }),
      },
      status: nothing,
    },
  };
}
