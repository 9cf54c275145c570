// `/v1/audit-log`: who did what, as this server has written it down. Each server has its own log.

import type { AuditRecord } from '../../../api/audit/audit-log.ts';
import { ApiError } from '../../../api/errors.ts';
import { auditLogRoutes as routes } from '../../../api/routes/audit-log.ts';
import { assertMay } from '../../../core/access/may.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { rightsOf } from '../../../core/access/rights-of.ts';
import type { Snapshot } from '../../../core/state/snapshot.ts';
import type { Audit } from '../../audit/audit.ts';
import { searchLog } from '../../audit/search-log.ts';
import type { Decider } from '../../decide.ts';
import type { Route } from '../route.ts';
import { bind } from './bind.ts';

export function auditLogRoutes(audit: Audit | undefined, { cache }: Pick<Decider, 'cache'>): Route[] {
  const running = (): Audit => {
    if (audit) return audit;
    throw new ApiError('NotFound', 'this server keeps no audit log: its configuration has "audit: false"');
  };
  const servers = (): string[] => [...cache.listCommitted('member')].flatMap(({ value }) => value.url ?? []);
  return [
    bind(routes.read, async ({ query }, { caller }) => {
      const { log } = running().parts;
      const { since = 0, who, object, trace, limit, continue: from } = query;
      await log.settled();
      const sees = seenBy(caller.principal, cache);
      const fromSeq = from === undefined ? 0 : seqOf(from);
      const search = { fromSeq, sinceMs: since, who, object, trace, limit, sees };
      const { items, nextSeq } = await searchLog(log.directory, search);
      const more = nextSeq === undefined ? {} : { continue: String(nextSeq) };
      return { status: 200, json: { server: log.server, items, ...more, servers: servers() } };
    }),
    bind(routes.verify, async (_, { caller }) => {
      if (!seenBy(caller.principal, cache)({ project: '' }))
        assertMay(cache, caller.principal, { verb: 'read-audit', resource: 'audit' });
      const { verify, parts } = running();
      return { status: 200, json: { server: parts.log.server, ...(await verify()), servers: servers() } };
    }),
  ];
}

/** A role in a project shows what is of that project; one on hosts and images what is of none. */
function seenBy(principal: Principal, snapshot: Snapshot): (record: Pick<AuditRecord, 'project'>) => boolean {
  const rights = rightsOf(principal, snapshot);
  const known = new Map<string, boolean>();
  return ({ project = '' }) => {
    let may = known.get(project);
    if (may === undefined) {
      const about = { resource: 'audit', ...(project === '' ? {} : { project }) } as const;
      may =
        rights.allows({ verb: 'read-audit', ...about }) ||
        (project === '' && rights.allows({ verb: 'read-placement', ...about }));
      known.set(project, may);
    }
    return may;
  };
}

function seqOf(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ApiError('InvalidRequest', 'continue must be the token returned with the previous page', {
    field: 'continue',
  });
}
