// The routes by which the authority of the fleet is shown and replaced.

import { X509Certificate } from 'node:crypto';
import type { AuthorityStatus } from '../../api/trust/authority.ts';
import { joinRoutes as routes } from '../../api/routes/joining.ts';
import { ApiError } from '../../api/errors.ts';
import { issuingOf, servingOf } from '../../core/operations/access/authority.ts';
import {
  authorityHosts,
  beginRotation,
  finishRotation,
  noAuthority,
} from '../../core/operations/access/authority-rotation.ts';
import { keys } from '../../core/state/keys.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Decider } from '../decide.ts';
import { decideFor } from '../http/on-behalf.ts';
import { bind } from '../http/routes/bind.ts';
import type { Route } from '../http/route.ts';
import { fingerprintOf } from '../../base/tls/fingerprint.ts';
import type { JoinParts } from './join-routes.ts';

export function authorityRoutes(decider: Decider, parts: JoinParts | undefined): Route[] {
  const { cache, clock } = decider;
  return [
    bind(routes.status, () => ({ status: 200, json: statusOf(cache) })),
    bind(routes.rotate, async ({ body: { overlapMs } }, request) => {
      if (parts === undefined) throw new ApiError('Conflict', 'this server speaks plain HTTP; start it with --tls');
      const { makeAuthority } = await import('./certificates.ts');
      const made = await makeAuthority({ nowMs: Math.floor(clock.nowMs()), randomSecret: parts.randomSecret });
      await decideFor(decider, request, (snapshot, ctx) => beginRotation(snapshot, { made, overlapMs }, ctx));
      return { status: 201, json: statusOf(cache) };
    }),
    bind(routes.finishRotation, async ({ body: { force } }, request) => {
      await decideFor(decider, request, (snapshot, ctx) => finishRotation(snapshot, { force }, ctx));
      return { status: 200, json: statusOf(cache) };
    }),
  ];
}

/** Throws `NotFound` when the fleet has no authority. */
function statusOf(snapshot: Snapshot): AuthorityStatus {
  const authority = snapshot.get('authority', keys.authority)?.value;
  if (authority === undefined) throw noAuthority();
  const [serving, issuing] = [servingOf(authority), issuingOf(authority)];
  return {
    authorities: authority.generations.map((generation) => ({
      fingerprint: fingerprintOf(generation.root.certificate),
      createdAtMs: generation.createdAtMs,
      notAfterMs: new X509Certificate(generation.root.certificate).validToDate.getTime(),
      servers: generation === serving,
      hosts: generation === issuing,
    })),
    ...(authority.rotation === undefined ? {} : { rotation: authority.rotation }),
    hosts: authorityHosts(snapshot),
  };
}
