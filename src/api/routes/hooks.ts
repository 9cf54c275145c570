// The route on which forges deliver webhooks. It needs no token: the body is signed with the secret of its hook.

import { Type } from 'typebox';
import { anyObject, json, openBodyErrors, route } from './route.ts';

const Delivered = Type.Object({
  jobs: Type.Array(Type.String({ description: 'name of a job' })),
  reason: Type.Optional(Type.String({ description: 'why there are none' })),
});

export const hookRoutes = {
  deliver: route({
    id: 'deliverWebhook',
    tag: 'jobs',
    method: 'POST',
    path: '/v1/hooks/:hook',
    access: 'open',
    summary: 'Deliver a webhook of a forge: jobs are created by the rules of the hook',
    body: anyObject,
    bodyDescription:
      'as the forge sends it, at most 25 MiB, signed in the header X-Hub-Signature-256 (GitHub) or X-Forgejo-Signature (Forgejo)',
    bodyCheckedByHandler: true,
    bodyUnparsed: true,
    answers: {
      200: json(Delivered, 'it was delivered before, or asks for no job'),
      202: json(Delivered, 'the jobs are created'),
      204: { description: 'an event of a kind that never becomes a job' },
    },
    errors: [...openBodyErrors, 'Unauthenticated', 'QuotaExceeded', 'NotFound', 'StoreFull'],
  }),
} as const;
