// Deliveries of webhooks: what became of them, and another try.

import type { WebhookDelivery } from '../../../api/news/webhook-delivery.ts';
import type { Webhook } from '../../../api/resources/webhook.ts';
import { webhookRoutes as routes } from '../../../api/routes/webhooks.ts';
import { assertMayOn } from '../../../core/access/may.ts';
import { askAgain, testWebhook } from '../../../core/operations/webhooks/webhook.ts';
import { keys } from '../../../core/state/keys.ts';
import type { PendingDelivery } from '../../../core/state/records.ts';
import type { Entry } from '../../../core/state/snapshot.ts';
import { type Decider, forProject } from '../../decide.ts';
import { decideFor } from '../on-behalf.ts';
import type { Route, RouteRequest } from '../route.ts';
import { bind } from './bind.ts';
import { findOne } from './find-resource.ts';

export function webhookRoutes(decider: Decider): Route[] {
  const { cache } = decider;
  /** To be sent something, a webhook must be one that the caller may change. */
  const changeable = ({ caller }: RouteRequest, name: string, project: string): Entry<Webhook> => {
    const entry = findOne('webhook', cache, { caller, name, project });
    assertMayOn(cache, caller.principal, 'update', entry.value);
    return entry;
  };
  return [
    bind(routes.deliveries, ({ params, query }, { caller }) => {
      const { metadata } = findOne('webhook', cache, { caller, name: params.name, project: query.project }).value;
      const progress = cache.committed('webhookProgress', keys.webhookProgress(metadata.project, metadata.name))?.value;
      const known = progress?.webhookId === metadata.id ? progress : undefined;
      return { status: 200, json: { items: [...(known?.delivered ?? []), ...(known?.pending ?? []).map(shown)] } };
    }),
    bind(routes.resend, async ({ params, query }, request) => {
      const { name, project } = changeable(request, params.name, query.project).value.metadata;
      const { event } = params;
      await decideFor(forProject(project, decider), request, (snapshot) => {
        const now = snapshot.get('webhook', keys.webhook(project, name))?.value;
        if (now) assertMayOn(snapshot, request.caller.principal, 'update', now);
        return askAgain(snapshot, { project, name, event });
      });
      return { status: 202, json: { event } };
    }),
    bind(routes.test, async ({ params, query }, request) => {
      const { name, project } = changeable(request, params.name, query.project).value.metadata;
      const { decision } = await decideFor(forProject(project, decider), request, (snapshot, ctx) => {
        const now = snapshot.get('webhook', keys.webhook(project, name))?.value;
        if (now) assertMayOn(snapshot, request.caller.principal, 'update', now);
        return testWebhook(snapshot, { project, name }, ctx);
      });
      return { status: 202, json: { event: decision.event } };
    }),
  ];
}

function shown({ event, ...rest }: PendingDelivery): WebhookDelivery {
  const state = rest.nextAtMs === undefined ? 'Parked' : 'Waiting';
  return { event: event.id, type: event.type, subject: event.subject, state, ...rest };
}
