// Routes that only hosts' agents call. A token of one host opens only the routes of that host.

import { ApiError } from '../../../../api/errors.ts';
import { parse } from '../../../../api/parse.ts';
import { Name } from '../../../../api/resources/metadata.ts';
import { agentRoutes as routes } from '../../../../api/routes/agent.ts';
import type { Principal } from '../../../../core/access/principal.ts';
import { assertNotRemoved, heartbeat, registerHost, sessionOf } from '../../../../core/operations/host.ts';
import { applyReport } from '../../../../core/operations/report.ts';
import { applyVolumeReport } from '../../../../core/operations/volumes/volume-report.ts';
import { maintenanceOrderFor } from '../../../../core/plans/maintenance-order.ts';
import { keys } from '../../../../core/state/keys.ts';
import type { GuestUsages } from '../../../metrics/guest-usages.ts';
import type { Assignments } from '../../../assignments.ts';
import { contextOf, decideAndCommit, type Decider } from '../../../decide.ts';
import { CertificateUses } from '../../../tls/certificate-uses.ts';
import { bind } from '../bind.ts';
import type { Route } from '../../route.ts';

export interface AgentParts {
  readonly usages: GuestUsages;
  readonly decider: Decider;
  readonly assignments: Assignments;
  /** Whether hosts can have certificates: this server speaks TLS. */
  readonly givesCertificates: boolean;
}

export function agentRoutes({ decider, assignments, givesCertificates, usages }: AgentParts): Route[] {
  const { cache, policy } = decider;
  const certificates = new CertificateUses(decider);
  return [
    bind(routes.register, async ({ params, body: registration }, { caller: { principal } }) => {
      const name = parse(Name, params.host, 'host');
      const credential = givesCertificates && principal.kind === 'host' ? credentialOf(principal) : undefined;
      const input = { name, registration, ...(credential === undefined ? {} : { credential }) };
      await decideAndCommit(decider, (snapshot, ctx) => registerHost(snapshot, input, ctx));
      const host = cache.committed('host', keys.host(name));
      if (host?.value.status.session !== registration.session) {
        throw new ApiError('StaleEpoch', `another agent has registered as host "${name}" at the same time`);
      }
      return { status: 200, json: sessionOf(host.value, contextOf(decider)) };
    }),
    bind(routes.heartbeat, async ({ params, body }, { caller }) => {
      const { usage, ...told } = body; // what guests use is never stored
      const input = { name: params.host, heartbeat: told };
      await decideAndCommit(decider, (snapshot, ctx) => heartbeat(snapshot, input, ctx));
      if (usage) usages.note(params.host, usage, contextOf(decider));
      const maintain = maintenanceOrderFor(cache, params.host);
      const answer = maintain === undefined ? {} : { maintain };
      return { status: 200, json: answer, headers: await certificates.noted(caller.principal) };
    }),
    bind(routes.report, async ({ params: { host }, body: { epoch, reports, volumes } }) => {
      if (reports.length === 0 && (volumes ?? []).length === 0)
        throw new ApiError('InvalidRequest', 'this report is empty', { field: 'reports' });
      const [guests, disks] = await Promise.all([
        Promise.all(
          reports.map((report) =>
            decideAndCommit(decider, (snapshot, ctx) => applyReport(snapshot, { host, epoch, report }, ctx)),
          ),
        ),
        Promise.all(
          (volumes ?? []).map((report) =>
            decideAndCommit(decider, (snapshot, ctx) => applyVolumeReport(snapshot, { host, epoch, report }, ctx)),
          ),
        ),
      ]);
      const results = guests.map(({ decision }) => decision.result);
      return {
        status: 200,
        json: volumes ? { results, volumes: disks.map(({ decision }) => decision.result) } : { results },
      };
    }),
    bind(routes.assignments, ({ params, query }, { signal }) => {
      const lines = assignments.stream(params.host, query.epoch, policy.heartbeatMs, signal);
      return { status: 200, lines };
    }),
    bind(routes.images, ({ params }) => {
      assertNotRemoved(cache, params.host);
      const items = [...cache.listCommitted('image')].map(({ value }) => value);
      const pool = cache.committed('host', keys.host(params.host))?.value.spec.pool;
      return {
        status: 200,
        json: { items, revision: cache.revision, ...(pool === undefined ? {} : { pool }) },
      };
    }),
  ];
}

function credentialOf({ serial }: Extract<Principal, { kind: 'host' }>): 'certificate' | 'host-token' {
  return serial === undefined ? 'host-token' : 'certificate';
}
