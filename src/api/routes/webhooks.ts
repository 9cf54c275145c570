// What can be asked of a webhook, besides what every resource has.

import { Type } from 'typebox';
import { WebhookDelivery } from '../news/webhook-delivery.ts';
import { queryParameters } from './parameters.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'webhooks';
const { project } = queryParameters;
const Asked = Type.Object({ event: Type.String({ description: 'the id of the event that is sent' }) }, closed);

export const webhookRoutes = {
  deliveries: route({
    id: 'listWebhookDeliveries',
    tag,
    method: 'GET',
    path: '/v1/webhooks/:name/deliveries',
    access: needs('webhook', 'read'),
    summary: 'List what waits, what is parked, and what was delivered last',
    query: { project },
    answers: {
      200: json(Type.Object({ items: Type.Array(WebhookDelivery, { description: 'the newest last' }) }, closed)),
    },
    errors: ['NotFound'],
  }),
  resend: route({
    id: 'resendWebhookDelivery',
    tag,
    method: 'POST',
    path: '/v1/webhooks/:name/deliveries/:event/resend',
    access: needs('webhook', 'update'),
    summary: 'Send an event again, with the same id',
    query: { project },
    answers: { 202: json(Asked, 'accepted') },
    errors: ['NotFound'],
  }),
  test: route({
    id: 'testWebhook',
    tag,
    method: 'POST',
    path: '/v1/webhooks/:name/test',
    access: needs('webhook', 'update'),
    summary: 'Send an event about the webhook itself, whatever it subscribes to',
    query: { project },
    answers: { 202: json(Asked, 'accepted') },
    errors: ['NotFound'],
  }),
} as const;
