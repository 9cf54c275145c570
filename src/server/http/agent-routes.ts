// Routes that only hosts' agents call. A token of one host opens only the routes of that host.

import { Heartbeat, Registration, Reports } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { parse } from '../../api/parse.ts';
import { Name } from '../../api/resources/metadata.ts';
import { heartbeat, registerHost, sessionOf } from '../../core/operations/host.ts';
import { applyReport } from '../../core/operations/report.ts';
import { applyVolumeReport } from '../../core/operations/volume-report.ts';
import { keys } from '../../core/state/keys.ts';
import type { Assignments } from '../assignments.ts';
import { contextOf, decideAndCommit, type Decider } from '../decide.ts';
import type { Route } from './route.ts';

export interface AgentParts {
  readonly decider: Decider;
  readonly assignments: Assignments;
}

const epochRange = { min: 1, max: Number.MAX_SAFE_INTEGER };

export function agentRoutes({ decider, assignments }: AgentParts): Route[] {
  const { cache, policy } = decider;
  return [
    {
      method: 'PUT',
      path: '/v1/hosts/:host/session',
      verb: 'agent',
      async handle({ params, query, body }) {
        query.only();
        const name = parse(Name, params['host'], 'host');
        const registration = parse(Registration, body);
        await decideAndCommit(decider, (snapshot, ctx) => registerHost(snapshot, { name, registration }, ctx));
        const host = cache.committed('host', keys.host(name));
        if (host?.value.status.session !== registration.session) {
          throw new ApiError('StaleEpoch', `another agent has registered as host "${name}" at the same time`);
        }
        return { status: 200, json: sessionOf(host.value, contextOf(decider)) };
      },
    },
    {
      method: 'POST',
      path: '/v1/hosts/:host/heartbeat',
      verb: 'agent',
      async handle({ params, query, body }) {
        query.only();
        const input = { name: params['host'] ?? '', heartbeat: parse(Heartbeat, body) };
        await decideAndCommit(decider, (snapshot, ctx) => heartbeat(snapshot, input, ctx));
        return { status: 200, json: {} };
      },
    },
    {
      method: 'POST',
      path: '/v1/hosts/:host/reports',
      verb: 'agent',
      async handle({ params, query, body }) {
        query.only();
        const { epoch, reports, volumes } = parse(Reports, body);
        if (reports.length === 0 && (volumes ?? []).length === 0)
          throw new ApiError('InvalidRequest', 'there is nothing in this report', { field: 'reports' });
        const host = params['host'] ?? '';
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
      },
    },
    {
      method: 'GET',
      path: '/v1/hosts/:host/assignments',
      verb: 'agent',
      handle({ params, query, signal }) {
        query.only('epoch');
        const epoch = query.integer('epoch', epochRange);
        if (epoch === undefined) throw new ApiError('InvalidRequest', 'epoch is missing', { field: 'epoch' });
        return { status: 200, lines: assignments.stream(params['host'] ?? '', epoch, policy.heartbeatMs, signal) };
      },
    },
    {
      method: 'GET',
      path: '/v1/hosts/:host/images',
      verb: 'agent',
      handle({ params, query }) {
        query.only();
        const items = [...cache.listCommitted('image')].map(({ value }) => value);
        const pool = cache.committed('host', keys.host(params['host'] ?? ''))?.value.spec.pool;
        return {
          status: 200,
          json: { items, revision: cache.revision, ...(pool === undefined ? {} : { pool }) },
        };
      },
    },
  ];
}
