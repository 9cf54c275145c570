// What the sender of a webhook writes: how far it has come, and that a receiver is gone.

import type { Webhook } from '../../../api/resources/webhook.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { emptyPlan, type Plan } from '../../state/plan.ts';
import type { WebhookProgress } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/**
 * Writes `progress` over revision `ifRevision`; nothing when the webhook is another by now, or the progress has another revision: of another
 * sender, or of a write whose answer was lost. `revision`: of the progress that it found.
 */
export function writeProgress(
  snapshot: Snapshot,
  { progress, ifRevision }: { readonly progress: WebhookProgress; readonly ifRevision: number },
): { readonly plan: Plan; readonly written: boolean; readonly revision: number } {
  const { project, name, webhookId } = progress;
  const webhook = snapshot.get('webhook', keys.webhook(project, name));
  const key = keys.webhookProgress(project, name);
  const revision = snapshot.get('webhookProgress', key)?.revision ?? 0;
  if (webhook?.value.metadata.id !== webhookId || revision !== ifRevision)
    return { plan: emptyPlan, written: false, revision };
  return { plan: { changes: [{ key, ifRevision: revision, value: progress }] }, written: true, revision };
}

/** No event is sent to the webhook until it is replaced. */
export function disableWebhook(
  snapshot: Snapshot,
  { key, id, reason }: { readonly key: string; readonly id: string; readonly reason: string },
  ctx: Context,
): { readonly plan: Plan } {
  const entry = snapshot.get('webhook', key);
  if (entry?.value.metadata.id !== id || entry.value.status.disabled) return { plan: emptyPlan };
  const { value } = entry;
  const webhook: Webhook = { ...value, status: { ...value.status, disabled: { atMs: ctx.nowMs, reason } } };
  return {
    plan: {
      changes: [
        { key, ifRevision: entry.revision, value: webhook },
        eventChange(value, { type: 'Warning', reason: 'Disabled', message: `nothing more is sent: ${reason}` }, ctx),
      ],
    },
  };
}
