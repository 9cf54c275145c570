// The typed client of the API for users' programs. It must not import a schema at run time: without schemas the command line
// starts in a third of the time.

import type { AuthorityStatus, FinishRotationRequest, RotationRequest } from '../trust/authority.ts';
import type { WebhookDelivery } from '../news/webhook-delivery.ts';
import type { InventoryStatus } from '../resources/inventory.ts';
import type { MasterKeyStatus } from '../routes/master-keys.ts';
import type { AuditLogCheck, AuditLogPage } from '../audit/audit-log.ts';
import type { ServerList } from '../upgrade/servers.ts';
import type { VerifyReport, VerifyRequest } from '../verify.ts';
import type { Candidates } from '../candidates.ts';
import type { Capacity } from '../capacity.ts';
import type { Effects } from '../plans/effects.ts';
import type { RolloutPlan } from '../plans/rollout-plan.ts';
import type { DrainAnswer, DrainOptions, HostDrain } from '../plans/host-plan.ts';
import type { MigrateOptions, MigrationPlan } from '../plans/migration-plan.ts';
import type { ResizeOptions, ResizePlan } from '../plans/resize-plan.ts';
import type { Migration } from '../resources/migration.ts';
import type { HostRestore, RestoreAnswer, RestoreOptions } from '../plans/host-restore.ts';
import type { HostRoll, RollAnswer, RollOptions } from '../plans/host-roll.ts';
import type { RebalanceAnswer, RebalanceOptions } from '../plans/rebalance.ts';
import type { QueueList } from '../queue.ts';
import type { DeadLetter } from '../dead-letter.ts';
import type { Explanation } from '../explanation.ts';
import type { FleetMap } from '../lists/fleet-map.ts';
import type { HostToken } from '../host-token.ts';
import type { Host } from '../resources/host.ts';
import type { InstanceBatchAnswer } from '../instance-batch.ts';
import { pluralOf } from '../resources/plural-of.ts';
import type { Kind, ResourceByKind } from '../resources/index.ts';
import type { Labels } from '../resources/metadata.ts';
import type { Token } from '../resources/token.ts';
import type { CanI, CanIRequest, Extension, ShareRequest, TokenRequest, WhoAmI } from '../routes/access.ts';
import type { ClaimSpec } from '../routes/warm-pools.ts';
import type { Endpoint, ScalePlan, WorkloadRevisionView } from '../routes/workloads.ts';
import type { AskSpec } from '../resources/task.ts';
import { type ClientOptions, linesOf, parseLine, Requests } from './requests.ts';
import type { InstanceUsage, InstanceUsageList } from '../guests/guest-usage.ts';
import type { HostProviders, LedgerProvider, ProjectTotal, ProjectUsage, UsagePage } from '../usage.ts';

export {
  type ClientOptions,
  errorOf,
  type FetchInit,
  type FetchLike,
  type FetchResponse,
  linesOf,
  parseLine,
} from './requests.ts';

/** One of the two. */
export interface MigrateAnswer {
  readonly plan?: MigrationPlan;
  readonly migration?: Migration;
}

export type AuditLogQuery = Readonly<
  Partial<Record<'since' | 'limit', number> & Record<'who' | 'object' | 'trace' | 'continue', string>>
>;

/** A new token: its text, and the resource by which it is listed and revoked. */
export interface Issued {
  readonly token: string;
  readonly resource: Token;
}

export interface ListQuery {
  readonly project?: string;
  /** `tier=web,zone!=a,!old`: see docs/api.md. */
  readonly selector?: string;
  /** For events: only those of one resource. */
  readonly subject?: string;
  readonly limit?: number;
  readonly continue?: string;
  /** Reads by position instead of by `continue`: skips this many, and returns the `total`. */
  readonly offset?: number;
  readonly order?: 'name' | 'newest';
  /** The filter of the dashboard: docs/api.md. */
  readonly words?: string;
}

export interface ListPage<T> {
  readonly items: readonly T[];
  /** Of the state that was read; a watch from this revision misses nothing. */
  readonly revision: number;
  /** Of the store: pass it to a watch that continues from `revision`. */
  readonly epoch?: string;
  /** Pass it as `continue` for the next page; absent on the last. */
  readonly continue?: string;
  /** With `offset`. */
  readonly total?: number;
}

/** `put`: created or changed; `delete`: removed; `bookmark`: nothing new up to `revision`. */
export type WatchedChange<T> =
  | { readonly type: 'put'; readonly revision: number; readonly resource: T }
  | {
      readonly type: 'delete';
      readonly revision: number;
      readonly resource: { readonly metadata: { readonly name: string; readonly project: string } };
    }
  | { readonly type: 'bookmark'; readonly revision: number };

/** A line of a watch of several kinds. `refused`: the caller may not watch this kind; the others continue. */
export type KindsChange =
  | { readonly type: 'put'; readonly revision: number; readonly resource: ResourceByKind[Kind] }
  | {
      readonly type: 'delete';
      readonly revision: number;
      readonly resource: {
        readonly kind: Kind;
        readonly metadata: { readonly name: string; readonly project: string };
      };
    }
  | { readonly type: 'bookmark'; readonly revision: number }
  | { readonly type: 'refused'; readonly kind: Kind; readonly message: string };

export interface NewResource<Spec> {
  readonly metadata?: { readonly name?: string; readonly project?: string; readonly labels?: Labels };
  readonly spec: Spec;
}

export interface ChangedResource<Spec> extends NewResource<Spec> {
  readonly metadata?: NewResource<Spec>['metadata'] & { readonly revision?: number };
}

export type PlannedInstance = ResourceByKind['instance'] & { readonly explanation: Explanation };

/** A request for room on some host. */
export interface Asking {
  readonly project?: string;
  readonly labels?: Labels;
  readonly spec: Partial<AskSpec>;
}

export type UserClient = ReturnType<typeof createUserClient>;

/** An object of plain functions, because client.ts spreads it. */
export function createUserClient(options: ClientOptions) {
  const requests = new Requests(options);
  const request: Requests['send'] = (path, call) => requests.send(path, call);
  const json: Json = (path, call) => requests.json(path, call);
  return {
    request,
    json,
    ...resourceCalls(json),
    ...placementCalls(json),
    ...workloadCalls(json),
    ...jobCalls(json),
    ...fleetCalls(json),
    ...accessCalls(json),
    ...planeCalls(json),
    ...edgeCalls(json),
    ...streams(requests),
  };
}

type Json = Requests['json'];

/** The same calls for resources of every kind. */
function resourceCalls(json: Json) {
  return {
    list: <K extends Kind>(kind: K, query: ListQuery = {}): Promise<ListPage<ResourceByKind[K]>> =>
      json(pathOf(kind), { query: { ...query } }),

    /** `name` may be an id. */
    get: <K extends Kind>(kind: K, name: string, query: { project?: string } = {}): Promise<ResourceByKind[K]> =>
      json(pathOf(kind, name), { query }),

    create: <K extends Kind>(
      kind: K,
      body: NewResource<Partial<ResourceByKind[K]['spec']>>,
      extra: { idempotencyKey?: string; signal?: AbortSignal } = {},
    ): Promise<ResourceByKind[K]> =>
      json(pathOf(kind), {
        method: 'POST',
        body,
        ...(extra.signal ? { signal: extra.signal } : {}),
        ...(extra.idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': extra.idempotencyKey } }),
      }),

    /** What `create` would make. Throws what it would throw. */
    dryRun: <K extends Kind>(
      kind: K,
      body: NewResource<Partial<ResourceByKind[K]['spec']>>,
    ): Promise<ResourceByKind[K]> =>
      json(pathOf(kind), { method: 'POST', body, query: { dryRun: true }, repeatable: true }),

    /** What `replace` would leave; of a workload also the plan. Throws what it would throw. */
    dryRunOfChange: <K extends Kind>(
      kind: K,
      name: string,
      body: ChangedResource<Partial<ResourceByKind[K]['spec']>>,
    ): Promise<ResourceByKind[K] & { readonly effects?: Effects; readonly rollout?: RolloutPlan }> => {
      const project = body.metadata?.project;
      return json(pathOf(kind, name), { method: 'PUT', body, query: { project, dryRun: true }, repeatable: true });
    },

    /** What it is, and for a pool, an image, a size or a group what its deletion would affect. */
    dryRunOfDelete: <K extends Kind>(
      kind: K,
      name: string,
      query: { project?: string } = {},
    ): Promise<ResourceByKind[K] & { readonly effects?: Effects }> =>
      json(pathOf(kind, name), { method: 'DELETE', query: { ...query, dryRun: true }, repeatable: true }),

    /** At most 1,000 at once, in order: each is created or refused separately. With a key, item i has the key `<key>/<i>`. */
    createInstances: (
      items: readonly NewResource<Partial<ResourceByKind['instance']['spec']>>[],
      extra: { idempotencyKey?: string; signal?: AbortSignal } = {},
    ): Promise<InstanceBatchAnswer> =>
      json(`${pathOf('instance')}/batch`, {
        method: 'POST',
        body: { items },
        ...(extra.signal ? { signal: extra.signal } : {}),
        ...(extra.idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': extra.idempotencyKey } }),
      }),

    /** `apply`: of a workload, refused when the plan is another by now. */
    replace: <K extends Kind>(
      kind: K,
      name: string,
      body: ChangedResource<Partial<ResourceByKind[K]['spec']>>,
      { apply }: { readonly apply?: string } = {},
    ): Promise<ResourceByKind[K]> => {
      const { project } = body.metadata ?? {};
      return json(pathOf(kind, name), {
        method: 'PUT',
        body,
        query: { project: project === '' ? undefined : project, apply },
      });
    },

    /** Returns the resource after the call: an instance is `Deleting` until its host has removed everything of it. */
    delete: <K extends Kind>(
      kind: K,
      name: string,
      query: { project?: string; ifRevision?: number; force?: boolean; apply?: string } = {},
    ): Promise<ResourceByKind[K]> => json(pathOf(kind, name), { method: 'DELETE', query }),
  };
}

/** Questions about places for instances. */
function placementCalls(json: Json) {
  return {
    /** The instance as it would be created, and its host, or why there is none. Nothing is created or reserved. */
    plan: (
      body: NewResource<Partial<ResourceByKind['instance']['spec']>>,
      query: { limit?: number; continue?: string } = {},
    ): Promise<PlannedInstance> =>
      json(pathOf('instance'), { method: 'POST', body, query: { ...query, dryRun: true }, repeatable: true }),

    /** Hosts with room for it, the best first; `limit` at most. */
    candidates: (asking: Asking & { readonly limit?: number }): Promise<Candidates> =>
      json('/v1/candidates', { method: 'POST', body: asking, repeatable: true }),

    queue: (query: { project?: string; limit?: number } = {}): Promise<QueueList> => json('/v1/queue', { query }),

    /** How many more requests like this fit, or of every size; `losses`: check whether the fleet survives the loss of this many hosts. */
    capacity: (
      question: Partial<Asking> & { readonly losses?: number; readonly maxAgeMs?: number } = {},
    ): Promise<Capacity> => json('/v1/capacity', { method: 'POST', body: question, repeatable: true }),

    /** What a resize would do; with `apply` it is done, refused when the plan is another by now. */
    resizeInstance: (
      name: string,
      query: { project?: string } = {},
      body: ResizeOptions & { readonly apply?: string } = {},
    ): Promise<{ readonly plan: ResizePlan; readonly begun: boolean }> =>
      json(`${pathOf('instance', name)}/resize`, { method: 'POST', query, body }),

    /** The plan of a move; with `apply` the move that begins. */
    migrateInstance: (
      name: string,
      query: { project?: string } = {},
      body: MigrateOptions & { readonly apply?: string } = {},
    ): Promise<MigrateAnswer> => json(`${pathOf('instance', name)}/migration`, { method: 'POST', query, body }),

    /** Throws `Conflict` once it belongs to its new host. */
    cancelMigration: (name: string, query: { project?: string } = {}): Promise<Migration> =>
      json(`${pathOf('instance', name)}/migration`, { method: 'DELETE', query }),

    /** Current usage of a guest. Throws `NotFound` when the guest is not measured. */
    instanceUsage: (name: string, query: { project?: string } = {}): Promise<InstanceUsage> =>
      json(`${pathOf('instance', name)}/usage`, { query }),

    /** Usage of all measured guests, the highest CPU usage first. */
    allInstanceUsage: (query: { project?: string; limit?: number } = {}): Promise<InstanceUsageList> =>
      json('/v1/usage/instances', { query }),

    /** `limit`: number of hosts listed; default 20. */
    explain: (
      name: string,
      query: { project?: string; limit?: number; continue?: string } = {},
    ): Promise<Explanation> => json(`${pathOf('instance', name)}/explain`, { query }),
  };
}

/** Calls for jobs, in addition to those of every resource. */
function jobCalls(json: Json) {
  return {
    /** Repeating it is harmless. Throws `Conflict` when the job has ended. */
    cancelJob: (name: string, query: { project?: string } = {}): Promise<ResourceByKind['job']> =>
      json(`${pathOf('job', name)}/cancel`, { method: 'POST', query, repeatable: true }),

    /** A new job with the spec of one that has ended. */
    retryJob: (name: string, query: { project?: string } = {}): Promise<ResourceByKind['job']> =>
      json(`${pathOf('job', name)}/retry`, { method: 'POST', query }),

    /** A job of a template. Throws `InvalidRequest` naming a parameter that is missing or unknown. */
    runJobTemplate: (
      template: string,
      body: {
        readonly metadata?: { readonly name?: string; readonly labels?: Labels };
        readonly spec?: { readonly parameters?: Readonly<Record<string, string>> };
      } = {},
      { project, idempotencyKey }: { project?: string; idempotencyKey?: string } = {},
    ): Promise<ResourceByKind['job']> =>
      json(`${pathOf('jobTemplate', template)}/jobs`, {
        method: 'POST',
        body,
        query: project === undefined ? {} : { project },
        ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
      }),

    /** One with the same `request_id` makes the same job. */
    createJobRequest: (
      body: Readonly<Record<string, unknown>>,
      query: { project?: string } = {},
    ): Promise<ResourceByKind['job']> => json('/v1/job-requests', { method: 'POST', body, query, repeatable: true }),

    /** Messages of the broker that made no job. `more`: there are others behind these. */
    deadLetters: (): Promise<{ readonly items: readonly DeadLetter[]; readonly more: boolean }> =>
      json('/v1/dead-letters'),

    /** With its body. */
    deadLetter: (id: string): Promise<DeadLetter> => json(`/v1/dead-letters/${encodeURIComponent(id)}`),

    /** Publishes it again where it came from, and removes it. */
    retryDeadLetter: (id: string): Promise<DeadLetter> =>
      json(`/v1/dead-letters/${encodeURIComponent(id)}/retry`, { method: 'POST' }),

    dropDeadLetter: (id: string): Promise<DeadLetter> =>
      json(`/v1/dead-letters/${encodeURIComponent(id)}`, { method: 'DELETE' }),
  };
}

/** Calls for workloads and warm pools, in addition to those of every resource. */
function workloadCalls(json: Json) {
  return {
    /** The instance that was claimed: `status.claimed.warm` says whether its guest was ready. */
    claimWarmGuest: (
      pool: string,
      body: { readonly metadata?: { readonly labels?: Labels }; readonly spec?: Partial<ClaimSpec> } = {},
      { project, idempotencyKey }: { project?: string; idempotencyKey?: string } = {},
    ): Promise<ResourceByKind['instance']> =>
      json(`${pathOf('warmPool', pool)}/claim`, {
        method: 'POST',
        body,
        query: project === undefined ? {} : { project },
        ...(idempotencyKey === undefined ? {} : { headers: { 'idempotency-key': idempotencyKey } }),
      }),

    workloadRevisions: (
      name: string,
      query: { project?: string } = {},
    ): Promise<{ readonly items: readonly WorkloadRevisionView[] }> =>
      json(`${pathOf('workload', name)}/revisions`, { query }),

    /** With `apply` it is refused when the plan, which a dry run shows, is another by now. */
    undoWorkload: (
      name: string,
      body: { readonly to?: number; readonly apply?: string } = {},
      query: { project?: string; dryRun?: boolean } = {},
    ): Promise<ResourceByKind['workload'] & { readonly rollout?: RolloutPlan }> =>
      json(`${pathOf('workload', name)}/undo`, { method: 'POST', body, query }),

    /** `remove` names the copies that go, the first one first. With `apply` it is refused when the plan is another by now. */
    scaleWorkload: (
      name: string,
      body: { readonly replicas: number; readonly apply?: string },
      query: { project?: string; dryRun?: boolean } = {},
    ): Promise<ScalePlan> =>
      json(`${pathOf('workload', name)}/scale`, { method: 'POST', body, query, repeatable: true }),

    /** Of its copies that are ready. */
    workloadEndpoints: (
      name: string,
      query: { project?: string } = {},
    ): Promise<{ readonly items: readonly Endpoint[] }> => json(`${pathOf('workload', name)}/endpoints`, { query }),
  };
}

/** Calls for webhooks and inventories: what Berth exchanges with other systems. */
function edgeCalls(json: Json) {
  return {
    /** What waits, what is parked, and what was delivered last. */
    webhookDeliveries: (
      name: string,
      query: { project?: string } = {},
    ): Promise<{ readonly items: readonly WebhookDelivery[] }> =>
      json(`${pathOf('webhook', name)}/deliveries`, { query }),

    /** Sends an event again, with the same id. */
    resendDelivery: (name: string, event: string, query: { project?: string } = {}): Promise<{ event: string }> =>
      json(`${pathOf('webhook', name)}/deliveries/${encodeURIComponent(event)}/resend`, { method: 'POST', query }),

    /** Sends an event about the webhook itself; answers its id. */
    testWebhook: (name: string, query: { project?: string } = {}): Promise<{ event: string }> =>
      json(`${pathOf('webhook', name)}/test`, { method: 'POST', query }),

    /** Sends the whole list of nodes of an inventory. */
    pushNodes: (name: string, nodes: readonly unknown[]): Promise<InventoryStatus> =>
      json(`${pathOf('inventory', name)}/nodes`, { method: 'PUT', body: nodes }),

    /** Lets the hosts go that the last list lacks. */
    confirmInventory: (name: string, hash: string): Promise<InventoryStatus> =>
      json(`${pathOf('inventory', name)}/confirm`, { method: 'POST', body: { hash } }),
  };
}

/** Calls for tokens, sessions and rights. */
function accessCalls(json: Json) {
  return {
    /** Its text is in this answer only. */
    createToken: (body: TokenRequest): Promise<Issued> => json('/v1/tokens', { method: 'POST', body }),

    /** Another end for a token or a share, counted from now. */
    extendToken: (name: string, body: Extension): Promise<Token> =>
      json(`${pathOf('token', name)}/extend`, { method: 'POST', body }),

    /** A token for one instance. Its text is in this answer only. */
    share: (instance: string, { project, ...body }: ShareRequest & { readonly project?: string }): Promise<Issued> =>
      json(`${pathOf('instance', instance)}/shares`, { method: 'POST', query: { project }, body }),

    whoAmI: (): Promise<WhoAmI> => json('/v1/whoami'),

    /** A path for a browser: it opens the dashboard as the caller, once. */
    createSessionLink: (): Promise<{ readonly path: string; readonly expiresAtMs: number }> =>
      json('/v1/session/links', { method: 'POST' }),

    /** Whether the bearer of this token may do something; else why not. */
    canI: (body: CanIRequest): Promise<CanI> => json('/v1/can-i', { method: 'POST', body }),

    /** With the admin token only: the one with this SHA-256, hexadecimal, takes its place at once. */
    rotateAdminToken: (digest: string): Promise<Record<string, never>> =>
      json('/v1/admin-token/rotate', { method: 'POST', body: { digest } }),

    /** The token for the agent of a host; for operators. */
    hostToken: (host: string): Promise<HostToken> =>
      json(`/v1/hosts/${encodeURIComponent(host)}/token`, { method: 'POST' }),
  };
}

/** Calls for the control plane itself: its records, servers, keys and authority. */
function planeCalls(json: Json) {
  return {
    /** Finds inconsistent records; with `apply` repairs them. */
    verify: (body: Partial<VerifyRequest> = {}): Promise<VerifyReport> => json('/v1/verify', { method: 'POST', body }),

    /** Who did what, of the server that answers, by page. */
    auditLog: (query: AuditLogQuery = {}): Promise<AuditLogPage> => json('/v1/audit-log', { query }),

    /** Compares the audit log of the server that answers with its hash chain. */
    checkAuditLog: (): Promise<AuditLogCheck> => json('/v1/audit-log/check'),

    /** The servers of the store, and their versions. */
    servers: (): Promise<ServerList> => json('/v1/servers'),

    /** Which master keys the store needs. */
    masterKeys: (): Promise<MasterKeyStatus> => json('/v1/master-keys'),

    authorityStatus: (): Promise<AuthorityStatus> => json('/v1/ca/status'),

    rotateAuthority: (body: Partial<RotationRequest> = {}): Promise<AuthorityStatus> =>
      json('/v1/ca/rotation', { method: 'POST', body }),

    finishAuthorityRotation: (body: FinishRotationRequest): Promise<AuthorityStatus> =>
      json('/v1/ca/rotation/finish', { method: 'POST', body }),
  };
}

/** Calls for hosts, and for what they provide and hold. */
function fleetCalls(json: Json) {
  return {
    /** Of a silent host: it is down, and none of its guests runs. */
    declareHostDown: (host: string, body: { readonly reason: string }): Promise<Host> =>
      json(`/v1/hosts/${encodeURIComponent(host)}/declare-down`, { method: 'POST', body }),

    /** What a drain of the host would do; with `apply` the drain itself, refused when the plan is another by now. */
    drainHost: (
      host: string,
      request: Partial<DrainOptions> & { readonly apply?: string } = {},
    ): Promise<DrainAnswer> =>
      json(`${pathOf('host', host)}/drain`, { method: 'POST', body: request, repeatable: true }),

    showDrain: (host: string): Promise<HostDrain> => json(`${pathOf('host', host)}/drain`),

    cancelDrain: (host: string): Promise<HostDrain> => json(`${pathOf('host', host)}/drain`, { method: 'DELETE' }),

    /** What would return to the host after drains; with `apply` it returns, refused when the plan is another by now. */
    restoreHost: (
      host: string,
      request: Partial<RestoreOptions> & { readonly apply?: string } = {},
    ): Promise<RestoreAnswer> =>
      json(`${pathOf('host', host)}/restore`, { method: 'POST', body: request, repeatable: true }),

    showRestore: (host: string): Promise<HostRestore> => json(`${pathOf('host', host)}/restore`),

    cancelRestore: (host: string): Promise<HostRestore> =>
      json(`${pathOf('host', host)}/restore`, { method: 'DELETE' }),

    /** In which order hosts could be maintained; with `apply` they are, refused when the plan is another by now. */
    rollHosts: (request: Partial<RollOptions> & { readonly apply?: string }): Promise<RollAnswer> =>
      json('/v1/host-roll', { method: 'POST', body: request, repeatable: true }),

    showRoll: (): Promise<HostRoll> => json('/v1/host-roll'),

    /** False: it goes on, also after a failure. */
    pauseRoll: (paused: boolean): Promise<HostRoll> =>
      json('/v1/host-roll/pause', { method: 'POST', body: { paused }, repeatable: true }),

    cancelRoll: (): Promise<HostRoll> => json('/v1/host-roll', { method: 'DELETE' }),

    /** How fewer hosts could be used; with `apply` the drains that do it, refused when the plan is another by now. */
    rebalance: (request: Partial<RebalanceOptions> & { readonly apply?: string } = {}): Promise<RebalanceAnswer> =>
      json('/v1/rebalance', { method: 'POST', body: request, repeatable: true }),

    /** A drain for a host that never returns: with `apply` the host is removed. */
    evacuateHost: (host: string, request: { readonly apply?: string } = {}): Promise<DrainAnswer> =>
      json(`${pathOf('host', host)}/evacuate`, { method: 'POST', body: request }),

    /** What hosts provide and how much is allocated, by page. */
    usage: (query: { host?: string; limit?: number; continue?: string } = {}): Promise<UsagePage> =>
      json('/v1/usage', { query }),

    /** All hosts as columns. */
    fleetMap: (query: { labels?: string; maxAgeMs?: number } = {}): Promise<FleetMap> =>
      json('/v1/fleet-map', { query }),

    /** Totals of the instances of each project that the caller may see. */
    projectTotals: (query: { project?: string } = {}): Promise<{ readonly items: readonly ProjectTotal[] }> =>
      json('/v1/project-totals', { query }),

    /** The present usage of a project's quota. */
    projectUsage: (project: string): Promise<ProjectUsage> => json(`${pathOf('project', project)}/usage`),

    /** Show the providers of a host, and their allocations. */
    providers: (host: string): Promise<HostProviders> => json(`${pathOf('host', host)}/providers`),

    /** Show a provider of the ledger by its name or UUID, and its consumers. */
    ledgerProvider: (provider: string): Promise<LedgerProvider> => json(`/v1/ledger/${encodeURIComponent(provider)}`),
  };
}

function streams(requests: Requests) {
  return {
    /** Changes after `revision`, without end. Throws `ApiError` `Compacted` when the history was removed: list again. */
    async *watch<K extends Kind>(
      kind: K,
      query: Omit<ListQuery, 'limit' | 'continue' | 'offset' | 'order'> & {
        readonly revision: number;
        readonly epoch?: string;
      },
      signal?: AbortSignal,
    ): AsyncIterable<WatchedChange<ResourceByKind[K]>> {
      const response = await requests.send(pathOf(kind), {
        query: { ...query, watch: true },
        ...(signal ? { signal } : {}),
      });
      for await (const line of linesOf(response)) {
        const change = parseLine(line);
        requests.see(change);
        yield change as WatchedChange<ResourceByKind[K]>; // the codec
      }
    },

    /** The same of several kinds, over one connection and in order. */
    async *watchKinds(
      { kinds, ...query }: { readonly kinds: readonly Kind[]; readonly revision: number; readonly epoch?: string },
      signal?: AbortSignal,
    ): AsyncIterable<KindsChange> {
      const asked = { ...query, kinds: kinds.join() };
      const response = await requests.send('/v1/watch', { query: asked, ...(signal ? { signal } : {}) });
      for await (const line of linesOf(response)) {
        const change = parseLine(line);
        requests.see(change);
        yield change as KindsChange; // the codec
      }
    },

    /** The console log from byte `offset` on; with `follow` until the guest is removed or `signal` aborts. */
    async *log(
      name: string,
      query: { project?: string; offset?: number; follow?: boolean } = {},
      signal?: AbortSignal,
    ): AsyncIterable<Uint8Array> {
      const response = await requests.send(`${pathOf('instance', name)}/log`, { query, ...(signal ? { signal } : {}) });
      yield* response.body ?? [];
    },

    /**
     * Lines of an attempt's output from byte `offset` on, each `TIME STREAM TAG TEXT`; with `follow` until the attempt is over. The
     * end of the stream is no proof of that: the connection may have ended. Default attempt: the last.
     */
    async *jobLog(
      name: string,
      query: { project?: string; attempt?: number; offset?: number; follow?: boolean } = {},
      signal?: AbortSignal,
    ): AsyncIterable<Uint8Array> {
      const response = await requests.send(`${pathOf('job', name)}/log`, { query, ...(signal ? { signal } : {}) });
      yield* response.body ?? [];
    },

    /** The artifacts of an attempt that is over, as a tar archive. */
    async *jobArtifacts(
      name: string,
      query: { project?: string; attempt?: number } = {},
      signal?: AbortSignal,
    ): AsyncIterable<Uint8Array> {
      const response = await requests.send(`${pathOf('job', name)}/artifacts`, {
        query,
        ...(signal ? { signal } : {}),
      });
      yield* response.body ?? [];
    },
  };
}

/** Where the resources of a kind are, or one of them; user-client.test.ts compares it with the registry. */
export function pathOf(kind: Kind, name?: string): string {
  const all = `/v1/${pluralOf(kind)}`;
  return name === undefined ? all : `${all}/${encodeURIComponent(name)}`;
}
