// What users do with webhooks. Sending is the server's (outbox/webhooks/); `webhookProgress` says how far it has come.

import { ApiError } from '../../../api/errors.ts';
import type { Webhook, WebhookSpec } from '../../../api/resources/webhook.ts';
import { equalJson } from '../../../base/equal-json.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from '../replace.ts';
import { assertNamedExist } from '../secret-references.ts';

export function createWebhook(snapshot: Snapshot, input: CreateInput<WebhookSpec>, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'webhook');
  if (earlier) return earlier;
  assertSecrets(snapshot, input);
  const key = keys.webhook(input.project, input.name);
  assertFree(snapshot, 'webhook', key, input.name);
  const metadata = newMetadata(ctx.newId('hook'), input, ctx);
  const webhook: Webhook = { kind: 'webhook', schemaVersion, metadata, spec: input.spec, status: { asked: [] } };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: webhook },
        beginning(snapshot, webhook),
        ...rememberCreate(input, 'webhook', { key, id: metadata.id }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

/** The revision of this record is where its events begin. */
function beginning(snapshot: Snapshot, { metadata: { project, name, id } }: Webhook): Change {
  const key = keys.webhookProgress(project, name);
  return {
    key,
    ifRevision: snapshot.get('webhookProgress', key)?.revision ?? 0,
    value: { kind: 'webhookProgress', project, name, webhookId: id, revision: 0, asked: 0, pending: [], delivered: [] },
  };
}

/** A webhook that was disabled is enabled by it. */
export function replaceWebhook(snapshot: Snapshot, input: ReplaceInput<WebhookSpec>): Decision {
  const key = keys.webhook(input.project, input.name);
  const entry = existing(snapshot, 'webhook', key, input.ifRevision);
  const { value } = entry;
  const specChanged = !equalJson(value.spec, input.spec);
  const same = !specChanged && equalJson(value.metadata.labels, input.labels) && value.status.disabled === undefined;
  if (same) return alreadyDone(entry);
  assertSecrets(snapshot, input);
  const metadata = replacedMetadata(value.metadata, { labels: input.labels, specChanged });
  const { asked } = value.status;
  const webhook: Webhook = { ...value, metadata, spec: input.spec, status: { asked } };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: webhook }] }, key, changed: true };
}

export function deleteWebhook(snapshot: Snapshot, input: DeleteInput): Decision {
  const key = keys.webhook(input.project, input.name);
  const entry = existing(snapshot, 'webhook', key, input.ifRevision);
  const progress = snapshot.get('webhookProgress', keys.webhookProgress(input.project, input.name));
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: null },
        ...(progress ? [{ key: progress.key, ifRevision: progress.revision, value: null }] : []),
      ],
    },
    key,
    changed: true,
  };
}

const askedMax = 32;

/** Another delivery of an event, with the same id. Throws `NotFound` when the event is known neither to the store nor to the webhook. */
export function askAgain(
  snapshot: Snapshot,
  { project, name, event }: { readonly project: string; readonly name: string; readonly event: string },
): Decision {
  const key = keys.webhook(project, name);
  const entry = existing(snapshot, 'webhook', key);
  const { value } = entry;
  const pending = snapshot.get('webhookProgress', keys.webhookProgress(project, name))?.value.pending ?? [];
  const kept = snapshot.get('event', keys.event(project, event)) ?? snapshot.get('event', keys.event('default', event));
  if (!kept && !pending.some((each) => each.event.id === event))
    throw new ApiError('NotFound', `event "${event.slice(0, 80)}" is not kept any more`);
  const number = (value.status.asked.at(-1)?.number ?? 0) + 1;
  const asked = [...value.status.asked, { number, event }].slice(-askedMax);
  const webhook: Webhook = { ...value, status: { ...value.status, asked } };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: webhook }] }, key, changed: true };
}

/** The reason of an event that is for one webhook, whatever it subscribes to. */
export const testReason = 'TestAsked';

/** An event about the webhook itself, which it is sent. */
export function testWebhook(
  snapshot: Snapshot,
  { project, name }: { readonly project: string; readonly name: string },
  ctx: Context,
): Decision & { readonly event: string } {
  const key = keys.webhook(project, name);
  const entry = existing(snapshot, 'webhook', key);
  const change = eventChange(entry.value, { reason: testReason, message: 'somebody tries this webhook' }, ctx);
  const event = change.value?.kind === 'event' ? change.value.metadata.id : '';
  return { plan: { changes: [change] }, key, changed: true, event };
}

function assertSecrets(snapshot: Snapshot, { project, spec }: CreateInput<WebhookSpec>): void {
  const named = spec.secrets.map((reference, i) => ({ ...reference, field: `spec.secrets[${i}]` }));
  assertNamedExist(snapshot, project, named);
}
