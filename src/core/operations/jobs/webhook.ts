// What a webhook asks for: jobs by the rules of its hook, once for each event, each superseding the older jobs of its
// branch. Pure; server/intake/forges checks the signature, and asks the forge where `needsHead` says so.

import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { isFinal, type Job, JobSpec } from '../../../api/resources/job.ts';
import { passGate } from '../../queue/limits.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { forgeJobsOf } from '../../state/views/forge-jobs.ts';
import { keys } from '../../state/keys.ts';
import { type Change, emptyPlan, type Plan, unchanged } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { cancelChanges, createJob, retryOfLabel } from './job.ts';
import type { Forge, ForgeEvent } from './webhook-event.ts';
import { type AskedHead, type KnownPush, type Order, orderOf } from './webhook-order.ts';
import { type HookRule, type MatchedRule, matchingRules } from './webhook-rules.ts';

export interface Hook {
  readonly name: string;
  readonly forge: Forge;
  readonly project: string;
  /** Where its repositories are cloned from: `https://github.com`. */
  readonly cloneBaseUrl: string;
  readonly rules: readonly HookRule[];
  /** The label that approves the head of a pull request from a fork; absent: forks get no jobs. */
  readonly approvalLabel?: string;
}

export interface Delivery {
  readonly id: string;
  /** SHA-256 of `identityOf` the event, in hex. */
  readonly eventKey: string;
  readonly event: ForgeEvent;
  /** Absent: the forge was not asked. */
  readonly head?: AskedHead;
}

export interface WebhookDecision {
  readonly plan: Plan;
  /** `repeated`: an earlier delivery has created them. */
  readonly outcome: 'created' | 'repeated' | 'nothing' | 'needsHead';
  /** Names of the jobs. */
  readonly jobs: readonly string[];
  /** Of the first job, when jobs are created. */
  readonly key?: string;
  /** Why there are none. */
  readonly reason?: string;
  /** With `needsHead`: keys of the jobs that are known. */
  readonly seen?: ReadonlySet<string>;
}

/** `patient`: decide without asking the forge again. */
export function decideWebhook(
  snapshot: Snapshot,
  { hook, delivery, patient }: { readonly hook: Hook; readonly delivery: Delivery; readonly patient: boolean },
  ctx: Context,
): WebhookDecision {
  const { event } = delivery;
  const repeated = earlierJobs(snapshot, hook, delivery);
  if (repeated) return repeated;
  assertOwnCloneUrl(hook, event);
  const reason = whyNoJob(hook, event);
  if (reason !== undefined) return nothing(reason);
  const matched = matchingRules(hook.rules, event);
  if (matched.length === 0) return nothing('no rule matches');
  const wanted = matched.map((rule) => wantedJob(snapshot, { hook, delivery, rule }));
  if (patient && wanted.some(({ order }) => order.ask)) {
    const seen = new Set(wanted.flatMap(({ known }) => known.map(({ key }) => key)));
    return { plan: emptyPlan, outcome: 'needsHead', jobs: [], seen };
  }
  return createAll(snapshot, { hook, delivery, wanted }, ctx);
}

function nothing(reason: string): WebhookDecision {
  return { plan: emptyPlan, outcome: 'nothing', jobs: [], reason };
}

/** Tokens go where clone URLs lead, so the body cannot choose another server or repository. */
function assertOwnCloneUrl({ name, cloneBaseUrl }: Hook, { cloneUrl, repository }: ForgeEvent): void {
  const own = `${cloneBaseUrl}/${repository}`;
  if (cloneUrl === own || cloneUrl === `${own}.git`) return;
  throw new ApiError(
    'InvalidRequest',
    `repository.clone_url must be ${own}.git, as hook "${name}" is configured; set its cloneUrl if the forge has another address`,
    { field: 'repository.clone_url' },
  );
}

function whyNoJob({ approvalLabel }: Hook, { fork, label, action }: ForgeEvent): string | undefined {
  if (!fork) return action === 'labeled' ? 'a label asks for nothing' : undefined;
  if (approvalLabel === undefined) return 'pull requests from forks get no jobs';
  return label === approvalLabel ? undefined : `a pull request from a fork needs the label "${approvalLabel}"`;
}

function earlierJobs(snapshot: Snapshot, hook: Hook, delivery: Delivery): WebhookDecision | undefined {
  const view = forgeJobsOf(snapshot);
  for (const found of [view.ofDelivery(hook.name, delivery.id), view.ofEvent(hook.name, delivery.eventKey)]) {
    const entries = found.flatMap((key) => snapshot.get('job', key) ?? []).filter(({ value }) => !isRetry(value));
    if (entries.length > 0) return repeatedDecision(entries);
  }
  const record = memoryKeys(hook, delivery)
    .map((key) => snapshot.get('idempotency', key))
    .find((entry) => entry !== undefined);
  if (record === undefined) return undefined;
  // One of the jobs may be there still.
  const job = snapshot.get('job', record.value.resourceKey);
  if (job !== undefined && job.value.metadata.id === record.value.resourceId) return repeatedDecision([job]);
  return { ...nothing('the job of this event was deleted'), outcome: 'repeated', plan: unchanged(record) };
}

function isRetry({ metadata }: Job): boolean {
  return metadata.labels[retryOfLabel] !== undefined;
}

function repeatedDecision(entries: readonly Entry<Job>[]): WebhookDecision {
  return {
    plan: unchanged(...entries),
    outcome: 'repeated',
    jobs: entries.map(({ value }) => value.metadata.name).sort(),
  };
}

/** They outlive the jobs. No client can choose a key with two slashes. */
function memoryKeys({ name, project }: Hook, { id, eventKey }: Pick<Delivery, 'id' | 'eventKey'>): readonly string[] {
  return [`webhook/${name}/delivery/${id}`, `webhook/${name}/event/${eventKey}`].map((key) =>
    keys.idempotency(project, key),
  );
}

interface WantedJob extends MatchedRule {
  readonly known: readonly KnownPush[];
  readonly order: Order;
  /** A live job for the same commit: there is no need of another. */
  readonly same: Entry<Job> | undefined;
}

function wantedJob(
  snapshot: Snapshot,
  { hook, delivery, rule }: { readonly hook: Hook; readonly delivery: Delivery; readonly rule: MatchedRule },
): WantedJob {
  const { event, head } = delivery;
  const place = { hook: hook.name, repositoryId: event.repositoryId, ref: event.ref, context: rule.context };
  const known = forgeJobsOf(snapshot)
    .ofRef(place)
    .flatMap((key) => knownPush(snapshot.get('job', key)) ?? []);
  const same = known.find(({ live, sha }) => live && sha === event.sha);
  return {
    ...rule,
    known,
    order: same === undefined ? orderOf(known, event, head) : standing,
    same: same === undefined ? undefined : snapshot.get('job', same.key),
  };
}

const standing: Order = { ask: false, supersedes: [], supersededBy: undefined };

function knownPush(entry: Entry<Job> | undefined): KnownPush | undefined {
  if (entry?.value.spec.forge === undefined) return undefined;
  const { key, value } = entry;
  const { spec, status, metadata } = value;
  const live = !isFinal(status.phase) && status.cancel === undefined;
  return { key, name: metadata.name, sha: entry.value.spec.forge.sha, before: spec.forge?.before, live };
}

function createAll(
  snapshot: Snapshot,
  {
    hook,
    delivery,
    wanted,
  }: { readonly hook: Hook; readonly delivery: Delivery; readonly wanted: readonly WantedJob[] },
  ctx: Context,
): WebhookDecision {
  const changes: Change[] = [];
  const conditions: { key: string; ifRevision: number }[] = [];
  const jobs: Job[] = [];
  for (const [i, job] of wanted.entries()) {
    if (job.same) {
      jobs.push(job.same.value);
      conditions.push({ key: job.same.key, ifRevision: job.same.revision });
      continue;
    }
    const made = createOne(snapshot, { hook, delivery, wanted: job, number: i + 1 }, ctx);
    jobs.push(made.job);
    changes.push(...made.changes);
  }
  // Two control planes that decide on pushes to one repository at once conflict: each must see the job of the other.
  if (changes.length > 0) changes.push(passGate(snapshot, `webhook/${hook.name}/${delivery.event.repositoryId}`));
  const created = changes.length > 0;
  const [first] = jobs;
  if (first !== undefined) changes.push(...rememberAs(hook, delivery, first, ctx));
  return {
    plan: { changes, conditions },
    outcome: created ? 'created' : 'repeated',
    jobs: jobs.map(({ metadata }) => metadata.name),
    ...(created && first !== undefined ? { key: keys.job(hook.project, first.metadata.name) } : {}),
  };
}

function rememberAs(hook: Hook, delivery: Delivery, { metadata }: Job, ctx: Context): Change[] {
  return memoryKeys(hook, delivery).map((key) => ({
    key,
    ifRevision: 0,
    value: {
      kind: 'idempotency',
      resourceKey: keys.job(metadata.project, metadata.name),
      resourceId: metadata.id,
      fingerprint: '',
      createdAtMs: ctx.nowMs,
    },
  }));
}

function createOne(
  snapshot: Snapshot,
  parts: { readonly hook: Hook; readonly delivery: Delivery; readonly wanted: WantedJob; readonly number: number },
  ctx: Context,
): { readonly job: Job; readonly changes: readonly Change[] } {
  const { hook, delivery, wanted, number } = parts;
  const { supersedes, supersededBy } = wanted.order;
  const name = freeName(snapshot, { project: hook.project, delivery, number });
  const spec = specOf(hook, delivery, wanted);
  const { plan, key } = createJob(snapshot, { project: hook.project, name, labels: {}, spec }, ctx);
  const made = plan.changes.find((change) => change.key === key)?.value;
  if (made?.kind !== 'job') throw new TypeError('a new job is among the changes that create it');
  const cancel = { atMs: ctx.nowMs, reason: 'Superseded', message: `job "${supersededBy}" is for a newer commit` };
  const job: Job = supersededBy === undefined ? made : { ...made, status: { ...made.status, cancel } };
  const why = { reason: 'Superseded', message: `job "${made.metadata.name}" is for a newer commit` };
  return {
    job,
    changes: [
      ...plan.changes.map((change) => (change.key === key ? { ...change, value: job } : change)),
      ...(supersededBy === undefined ? [] : [eventChange(job, cancel, ctx)]),
      ...supersedes.flatMap((older) => {
        const entry = snapshot.get('job', older);
        return entry ? cancelChanges(entry, why, ctx) : [];
      }),
    ],
  };
}

/** `web-3f9a0c21d4`, from the repository's name; empty where it is taken, for a name that `createJob` finds. */
function freeName(
  snapshot: Snapshot,
  { project, delivery, number }: { readonly project: string; readonly delivery: Delivery; readonly number: number },
): string {
  const { event, eventKey } = delivery;
  const word = event.repository.slice(event.repository.indexOf('/') + 1).toLowerCase();
  const stem = word
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 40)
    .replace(/-+$/, '');
  const name = `${stem || 'job'}-${eventKey.slice(0, 10)}${number === 1 ? '' : `-${number}`}`;
  return snapshot.get('job', keys.job(project, name)) ? '' : name;
}

function specOf(hook: Hook, { id, eventKey, event }: Delivery, { rule, context }: MatchedRule): JobSpec {
  const { label, workflowPath, size, timeoutMs, env } = rule;
  return parse(JobSpec, {
    ...(label === undefined ? {} : { label }),
    ...(size === undefined ? {} : { size }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(env === undefined || event.fork ? {} : { env: { ...env } }),
    repo: {
      url: event.cloneUrl,
      commit: event.sha,
      ...(workflowPath === undefined ? {} : { path: workflowPath }),
    },
    forge: {
      hook: hook.name,
      forge: hook.forge,
      delivery: id,
      eventKey,
      event: event.event,
      repository: event.repository,
      repositoryId: event.repositoryId,
      sha: event.sha,
      ref: event.ref,
      ...(event.before === undefined ? {} : { before: event.before }),
      context,
    },
  });
}
