// What can be asked of a warm pool, besides what every resource has.

import { type Static, Type } from 'typebox';
import { InstanceSpec } from '../resources/instance.ts';
import { Labels } from '../resources/metadata.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const { ttlMs, expiresAtMs } = InstanceSpec.properties;

export const ClaimSpec = Type.Object(
  {
    ttlMs: Type.Optional(Type.Integer({ ...ttlMs, description: 'delete the instance this long after the claim' })),
    expiresAtMs,
    coldStart: Type.Boolean({
      default: true,
      description: 'when no guest is ready: create an instance of the same template; false: refuse',
    }),
  },
  { ...closed, default: {} },
);
export type ClaimSpec = Static<typeof ClaimSpec>;

export const warmPoolRoutes = {
  claim: route({
    id: 'claimWarmGuest',
    tag: 'warm-pools',
    method: 'POST',
    path: '/v1/warm-pools/:name/claim',
    access: needs('instance', 'update'),
    summary: 'Take a guest of it that is ready; it becomes an instance like any other',
    idempotencyKey: 'a repeated claim with the same key returns the instance of the first',
    query: { project: queryParameters.project },
    body: Type.Object(
      { metadata: Type.Object({ labels: Labels }, { ...closed, default: {} }), spec: ClaimSpec },
      closed,
    ),
    answers: { 200: json(resourceSchemas.instance.resource) },
    errors: ['NotFound', 'Conflict', 'QuotaExceeded', 'IdempotencyMismatch', 'StoreFull'],
  }),
};
