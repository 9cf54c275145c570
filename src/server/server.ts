// The control plane without its sockets: wires store, cache, committer, controllers and routes. The process gives it a real
// clock and HTTP; the simulator gives it simulated ones.

import type { Buggify } from '../base/buggify.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import { controllers } from '../core/controllers/registry.ts';
import { openCluster, type OpeningSecrets } from '../core/operations/servers/cluster.ts';
import { Cache } from '../core/state/cache.ts';
import { keys } from '../core/state/keys.ts';
import type { Policy } from '../core/state/context.ts';
import { epochOf, isMarked, whyClosed } from '../core/state/cluster-state.ts';
import type { Cluster } from '../core/state/records.ts';
import type { Store } from '../store/store.ts';
import { Assignments } from './assignments.ts';
import { Verifier } from './verifier.ts';
import { Committer } from './commit.ts';
import { Compaction } from './storage/compaction.ts';
import { ControlLoop } from './control-loop.ts';
import { contextOf, type Decider, decideAndCommit } from './decide.ts';
import { accessRoutes } from './http/routes/access-routes.ts';
import { agentRoutes } from './http/routes/hosts/agent-routes.ts';
import { type Audit, type AuditSettings, openAudit } from './audit/audit.ts';
import { auditedRoutes } from './audit/audited-routes.ts';
import { asFreshAsAsked } from './http/as-fresh-as-asked.ts';
import { serverListRoute } from './http/routes/servers/server-list-route.ts';
import { masterKeysRoute } from './http/routes/servers/master-key-routes.ts';
import { verifyRoutes } from './http/routes/servers/verify-routes.ts';
import { auditLogRoutes } from './http/routes/audit-log-routes.ts';
import { backupRoute } from './http/routes/servers/backup-route.ts';
import { capacityRoutes } from './http/routes/capacity-routes.ts';
import { candidateRoutes } from './http/routes/candidate-routes.ts';
import { sessionRoutes } from './http/sessions/session-routes.ts';
import type { ConnectionCounts } from './http/connections/connections.ts';
import type { MintToken } from './http/identity/mint-token.ts';
import type { HostLinks } from './http/agent-link/host-links.ts';
import { declareDownRoute } from './http/routes/hosts/declare-down.ts';
import { resizeRoutes } from './http/routes/plans/resize-routes.ts';
import { migrationRoutes } from './http/routes/migrations/migration-routes.ts';
import { moveRoutes } from './http/routes/migrations/move-routes.ts';
import { hostPlanRoutes } from './http/routes/plans/host-plan-routes.ts';
import { hostRollRoutes } from './http/routes/plans/host-roll-routes.ts';
import { hostTokenRoute } from './http/routes/hosts/host-token-route.ts';
import { imageContentRoutes } from './http/routes/images/image-content-routes.ts';
import { imageFromInstanceRoute } from './http/routes/images/image-from-instance.ts';
import { instanceBatchRoute } from './http/routes/instance-batch.ts';
import { instanceRoutes } from './http/routes/instance-routes.ts';
import { jobRequestRoutes } from './http/routes/jobs/job-request-routes.ts';
import { jobRoutes } from './http/routes/jobs/job-routes.ts';
import { docsPageRoute } from './http/docs-page/docs-page.ts';
import { processRoutes } from './http/routes/servers/process-routes.ts';
import { guestUsageRoutes } from './http/routes/guest-usage-routes.ts';
import { ledgerRoute } from './http/routes/hosts/ledger-route.ts';
import { queueRoutes } from './http/routes/queue-routes.ts';
import { jobTemplateRoutes } from './http/routes/workloads/job-template-routes.ts';
import { warmPoolRoutes } from './http/routes/workloads/warm-pool-routes.ts';
import { workloadRoutes } from './http/routes/workloads/workload-routes.ts';
import { spareRoutes } from './http/routes/schedule/spare-routes.ts';
import { scheduleRoutes } from './http/routes/schedule/schedule-routes.ts';
import { webhookRoutes } from './http/routes/webhook-routes.ts';
import { resourceRoutes } from './http/routes/resource-routes.ts';
import { runFileRoutes } from './http/routes/jobs/run-file-routes.ts';
import { watchRoute } from './http/routes/lists/watch-route.ts';
import { usageRoutes } from './http/routes/usage-routes.ts';
import { forgeRoutes } from './intake/forges/forges.ts';
import { authorityRoutes } from './tls/authority-routes.ts';
import { type JoinParts, joinRoutes } from './tls/join-routes.ts';
import { browserLoginRoutes } from './oidc/browser-login-routes.ts';
import { type LoginParts, loginRoutes } from './oidc/login-routes.ts';
import { type McpSettings, mcpRoutesOf } from './mcp/start-mcp.ts';
import { FleetSurvival } from './survival.ts';
import { WatchFeed } from './http/watch/watch-feed.ts';
import type { Route } from './http/route.ts';
import type { ImageContent } from './images/image-content.ts';
import { Hearing } from './hearing.ts';
import { inventoryRoutes } from './inventory/inventory-routes.ts';
import { Leadership, notFollowed } from './leadership.ts';
import { type LedSettings, ledParts } from './led-parts.ts';
import { Activity } from './metrics/activity.ts';
import { commitMeasures } from './metrics/commit-measures.ts';
import { GuestUsages } from './metrics/guest-usages.ts';
import { createMetrics } from './metrics/metrics.ts';
import { Outside } from './outside.ts';
import type { RunFiles } from './runs/run-files.ts';
import type { ServerSealing } from './sealing/server-sealing.ts';
import { SealingUpkeep } from './sealing/sealing-upkeep.ts';
import { RunJanitor } from './runs/run-janitor.ts';

export interface ServerParts extends LedSettings {
  readonly store: Store;
  /** `store` must be the sealed one; absent: nothing is encrypted. */
  readonly sealing?: ServerSealing;
  readonly clock: Clock;
  /** How long the process has been idle since its start, in milliseconds. */
  readonly idleMs: () => number;
  readonly prng: Prng;
  readonly log: Logger;
  readonly policy: Policy;
  readonly links: HostLinks;
  /** Counts the work of this process, for the metrics; default: a counter of its own. */
  readonly activity?: Activity;
  /** Metrics also under the names that Orchard has. */
  readonly sourceMetricNames?: boolean;
  /** Metrics of each guest. */
  readonly guestMetrics?: boolean;
  /** Counts of HTTP connections, for the metrics. */
  readonly connections?: ConnectionCounts;
  /** The files of uploaded images; absent: images cannot be uploaded. */
  readonly imageContent?: ImageContent;
  /** The logs and artifacts of runs. */
  readonly runFiles: RunFiles;
  /** Absent: this server speaks plain HTTP, and no host can join with a certificate. */
  readonly joining?: JoinParts;
  /** Absent: tokens cannot be created. */
  readonly mint?: MintToken;
  /** Logins by ID tokens; absent: none. */
  readonly login?: LoginParts;
  /** How long the room of a request to /schedule is held. Default: an hour. */
  readonly scheduleTtlMs?: number;
  /** Whether it fails or waits while no host has room. Default: it fails. */
  readonly scheduleWhenFull?: 'fail' | 'wait';
  /** Absent: MCP is off. */
  readonly mcp?: McpSettings | undefined;
  /** Default: no other system is configured. */
  readonly outside?: Outside;
  /** Identifies this control plane among several; the same after a restart. */
  readonly name: string;
  readonly leaseMs: number;
  /** For a new store. */
  readonly secrets: OpeningSecrets;
  /** A store of an earlier form is marked by `open`, not at the start. */
  readonly marksLater?: boolean;
  /** The audit log; absent: there is none. */
  readonly audit?: AuditSettings;
  /** Points at which the simulator injects unusual behaviour. Default: none. */
  readonly buggify?: Buggify;
}

export interface Server {
  readonly routes: readonly Route[];
  readonly decider: Decider;
  readonly cluster: Cluster;
  readonly audit?: Audit;
  /** Whether this server may write: false until `open` has marked the store. */
  readonly opened: boolean;
  /**
   * Marks the store: servers that do not know this server's form of records write nothing from then on. Throws as the start does.
   */
  open(): Promise<void>;
  ready(): boolean;
  leads(): boolean;
  stop(): Promise<void>;
}

/** Reads the store, then serves and reconciles. Throws when the store cannot be read. */
export async function startControlPlane(parts: ServerParts): Promise<Server> {
  const { store, clock, idleMs, prng, log, policy, name, leaseMs, secrets } = parts;
  const unusual = parts.buggify ? { buggify: parts.buggify } : {};
  const cache = new Cache(() => clock.monotonicMs());
  const activity = parts.activity ?? new Activity();
  const measured = commitMeasures(activity, clock);
  const committer = new Committer({ store, cache, log, measured, ...unusual });
  const provisioners = parts.spares && [...parts.spares.provisioners.keys()];
  const known = provisioners === undefined ? policy : { ...policy, provisioners };
  const decider: Decider = { cache, committer, clock, prng, policy: known, ...unusual };
  const reconciled: Activity['reconciled'] = (controller, result) => activity.reconciled(controller, result);
  const loop = new ControlLoop({ decider, store, controllers, log, reconciled });
  await loop.start();
  const open = async (): Promise<Cluster> => {
    const { decision } = await decideAndCommit(decider, (snapshot, ctx) => openCluster(snapshot, secrets, ctx));
    return decision.cluster;
  };
  const begin = async () => {
    const opened = parts.marksLater !== true || !isToBeMarked(cache);
    // `open` then makes the same decision, and commits the mark.
    const cluster = opened ? await open() : openCluster(cache, secrets, contextOf(decider)).cluster;
    const { tokenSecret: secret } = cluster;
    const audit = parts.audit && (await openAudit(parts.audit, { decider, store, clock, log, name, secret }));
    return { opened, cluster, audit };
  };
  const begun = await begin().catch(async (error: unknown) => {
    await loop.stop();
    throw error;
  });
  const { cluster, audit } = begun;
  const hearing = new Hearing({ silence: cache.silence, clock, idleMs, offlineAfterMs: policy.offlineAfterMs, log });
  hearing.start();
  const leads = (): boolean => leadership.leads;
  const led = ledParts(parts, { decider, log, leads });
  const leadership = new Leadership({
    decider,
    log,
    holder: name,
    leaseMs,
    alone: store.exclusive === true,
    follows: () => loop.ready,
    onLead(fence) {
      loop.lead(fence);
      for (const part of led) part.lead(fence);
    },
    onStepDown() {
      loop.stepDown();
      for (const part of led) part.stepDown();
    },
  });
  leadership.start();
  const whyNotReady = (): string | undefined =>
    // whyClosed comes first: in a closed store no lease is renewed, and that would be reported as the reason otherwise.
    whyClosed(cache) ?? (loop.ready ? leadership.trouble : notFollowed);
  const ready = (): boolean => whyNotReady() === undefined;
  if (begun.opened) tellOfClosing(cache, log);
  const compaction = new Compaction({ store, clock, log, policy, leads, revision: () => cache.revision, ...unusual });
  compaction.start();
  const feed = new WatchFeed({
    store,
    clock,
    log,
    revision: () => cache.revision,
    epoch: () => epochOf(cache),
  });
  for (const part of led) parts.outside?.add(part);
  const verifier = new Verifier({ decider, log });
  verifier.start();
  const { runFiles } = parts;
  const janitor = new RunJanitor({ runFiles, cache, clock, log, leads });
  janitor.start();
  const upkeep = parts.sealing && new SealingUpkeep({ ...parts.sealing, decider, leads, clock, log });
  upkeep?.start();
  const usages = new GuestUsages();
  // As for hosts: a server that was silent for this long is not known to run.
  const freshSinceMs = (): number => clock.monotonicMs() - parts.policy.offlineAfterMs;
  const metrics = createMetrics({
    guests: { snapshot: cache, usages, freshSinceMs },
    guestMetrics: parts.guestMetrics ?? false,
    cache,
    clock,
    activity,
    watches: () => feed.counts(),
    sourceNames: parts.sourceMetricNames ?? false,
    verifier,
    ready,
    leads,
    overloaded: () => hearing.overloaded,
    connections: parts.connections,
    outside: parts.outside,
    survival: new FleetSurvival({ snapshot: cache, clock }),
  });
  const assignments = new Assignments({ cache, clock, ...unusual });
  let { opened } = begun;
  const routes = allRoutes(parts, {
    decider,
    assignments,
    verifier,
    feed,
    metrics,
    whyNotReady,
    cluster,
    audit,
    usages,
    freshSinceMs,
  });
  return {
    routes,
    decider,
    cluster,
    ...(audit === undefined ? {} : { audit }),
    get opened() {
      return opened;
    },
    async open() {
      if (opened) return;
      await open();
      opened = true;
      tellOfClosing(cache, log);
    },
    ready,
    leads,
    async stop() {
      verifier.stop();
      for (const part of led) await part.stop();
      hearing.stop();
      janitor.stop();
      await upkeep?.stop();
      await leadership.stop();
      await audit?.stop();
      await Promise.all([loop.stop(), compaction.stop(), runFiles.stop()]);
      await committer.settled();
    },
  };
}

interface RouteParts {
  readonly decider: Decider;
  readonly assignments: Assignments;
  readonly verifier: Verifier;
  readonly feed: WatchFeed;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly usages: GuestUsages;
  readonly freshSinceMs: () => number;
  readonly whyNotReady: () => string | undefined;
  readonly cluster: Cluster;
  readonly audit: Audit | undefined;
}

function allRoutes(parts: ServerParts, made: RouteParts): readonly Route[] {
  const { store, sealing, clock, log, version, links, runFiles, outside = new Outside() } = parts;
  const { decider, verifier, metrics, whyNotReady, audit } = made;
  const hostSecret = Buffer.from(made.cluster.tokenSecret, 'base64url');
  const sessions = { decider, secret: hostSecret, secure: parts.joining !== undefined };
  const fresh = asFreshAsAsked(
    [
      ...processRoutes({ whyNotReady, version, metrics, outside, snapshot: decider.cache }),
      ...docsPageRoute(),
      masterKeysRoute(decider.cache, sealing),
      serverListRoute(decider),
      backupRoute({ store: sealing?.stored ?? store, clock, version }),
      hostTokenRoute(hostSecret, decider),
      declareDownRoute(decider),
      ...hostPlanRoutes(decider),
      ...hostRollRoutes(decider),
      ...migrationRoutes(decider),
      ...resizeRoutes(decider),
      ...moveRoutes({ decider, links }),
      ...joinRoutes(decider, parts.joining),
      ...authorityRoutes(decider, parts.joining),
      ...agentRoutes({
        decider,
        assignments: made.assignments,
        usages: made.usages,
        givesCertificates: parts.joining !== undefined,
      }),
      ...imageRoutes({ decider, links, content: parts.imageContent }),
      ...instanceRoutes({ decider, links }),
      ...candidateRoutes(decider),
      ...capacityRoutes(decider),
      ...scheduleRoutes({
        decider,
        ttlMs: parts.scheduleTtlMs ?? 3_600_000,
        whenFull: parts.scheduleWhenFull ?? 'fail',
      }),
      ...spareRoutes({ decider }),
      ...workloadRoutes(decider),
      ...jobTemplateRoutes(decider),
      ...warmPoolRoutes(decider),
      ...webhookRoutes(decider),
      ...inventoryRoutes(decider),
      ...jobRoutes(decider),
      ...jobRequestRoutes({ decider, outside }),
      ...runFileRoutes({ decider, runFiles }),
      ...forgeRoutes(parts.forges, { decider, log }),
      ...loginRoutes(parts.login, { decider }),
      ...(parts.mint ? accessRoutes({ decider, mint: parts.mint }) : []),
      ...sessionRoutes(sessions),
      ...browserLoginRoutes(parts.login, sessions),
      ...guestUsageRoutes(made),
      ...queueRoutes(decider),
      ...usageRoutes(made),
      ledgerRoute(decider),
      ...verifyRoutes(verifier, decider),
      ...auditLogRoutes(audit, decider),
      instanceBatchRoute(decider),
      ...resourceRoutes({ decider, store, feed: made.feed }),
      watchRoute({ decider, store, feed: made.feed }),
    ],
    { cache: decider.cache, clock, store },
  );
  const routes = auditedRoutes(fresh, audit?.parts);
  const { tokenSecret: secret } = made.cluster;
  return [
    ...routes,
    ...mcpRoutesOf(parts.mcp && { ...parts.mcp, routes, snapshot: decider.cache, log, version, secret }),
  ];
}

function imageRoutes({
  decider,
  links,
  content,
}: {
  readonly decider: Decider;
  readonly links: HostLinks;
  readonly content: ImageContent | undefined;
}): Route[] {
  if (content === undefined) return [];
  return [...imageContentRoutes({ decider, content }), imageFromInstanceRoute({ decider, links, content })];
}

/** Servers of an earlier version may write to the store now. */
function isToBeMarked(cache: Cache): boolean {
  const known = cache.committed('cluster', keys.cluster)?.value;
  return known !== undefined && !isMarked(known);
}

/** While another process restores or moves the store, this one answers 503: its log says since when, and why. */
function tellOfClosing(cache: Cache, log: Logger): void {
  const tell = (why: string): void => {
    const forGood = cache.committed('cluster', keys.cluster)?.value.closed?.by !== 'restore';
    log[forGood ? 'error' : 'warn']('nothing may be written to the store', { why }); // a restore ends by itself
  };
  let told = whyClosed(cache);
  if (told !== undefined) tell(told);
  cache.onCommitted((key) => {
    const why = key === keys.cluster ? whyClosed(cache) : told;
    if (why === told) return;
    told = why;
    if (why === undefined) log.info('the store is open again');
    else tell(why);
  });
}
