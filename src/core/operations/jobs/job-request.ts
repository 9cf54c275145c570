// A JobRequest becomes a job: reads the bytes of a message, and decides whether they make a job, repeat one, or are
// refused. The key is (project, request_id): any number of deliveries makes one job. Pure.

import { JobRequest, jobRequestBytesMax, jobRequestVersion } from '../../../api/job-request.ts';
import { ApiError } from '../../../api/errors.ts';
import { parse } from '../../../api/parse.ts';
import { JobSpec } from '../../../api/resources/job.ts';
import { isRecord } from '../../../base/is-record.ts';
import { canonicalJson } from '../../../base/json/canonical-json.ts';
import { parseStrictJson, type StrictJsonFault } from '../../../base/json/strict-json.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import { unchanged } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import type { Decision } from '../decision.ts';
import { imageWordOf } from './attempt.ts';
import { submitJob } from './submit-job.ts';

/** Why a message is refused for good: programs read this, people the message beside it. */
export type RefusalReason =
  | StrictJsonFault
  | 'TooLarge'
  | 'UnsupportedEncoding'
  | 'UnknownVersion'
  | 'InvalidRequest'
  | 'UnknownLabel'
  | 'RequestIdReused'
  | 'ReplyToRefused'
  | 'JobRefused';

/** A JobRequest with ids in lower case and without nulls. */
export interface ReadRequest {
  readonly request: JobRequest;
  /** Equal for two bodies that differ only in the order of keys, nulls and `submitted_at`. */
  readonly digest: string;
}

/** `details` of the error that refuses a message. */
export interface Refusal {
  readonly reason: RefusalReason;
}

/**
 * Why a message was refused; undefined: it was not, and may be tried again. An error of Berth itself refuses too: the
 * message would meet it again, and stop all behind it.
 */
export function refusalOf(error: unknown): { readonly reason: string; readonly message: string } | undefined {
  if (!(error instanceof ApiError))
    return { reason: 'InternalError', message: 'an internal error of Berth; see its log' };
  if (error.code === 'Unavailable' || error.code === 'StoreFull') return undefined;
  const { details, message } = error;
  const known = isRecord(details) && typeof details['reason'] === 'string' ? details['reason'] : 'JobRefused';
  return { reason: known, message };
}

function refuse(reason: RefusalReason, message: string, field?: string): ApiError {
  const details: Refusal = { reason };
  return new ApiError(reason === 'RequestIdReused' ? 'IdempotencyMismatch' : 'InvalidRequest', message, {
    details,
    ...(field === undefined ? {} : { field }),
  });
}

/** Throws `ApiError` with a `Refusal`. `hash`: a cryptographic hash of a text. */
export function readJobRequest(
  bytes: Uint8Array,
  { hash, contentEncoding }: { readonly hash: (text: string) => string; readonly contentEncoding?: string | undefined },
): ReadRequest {
  if (bytes.length > jobRequestBytesMax)
    throw refuse('TooLarge', `the message has ${bytes.length} bytes; at most ${jobRequestBytesMax} are read`);
  if (contentEncoding !== undefined && !plainEncodings.has(contentEncoding.toLowerCase()))
    throw refuse('UnsupportedEncoding', 'the message is compressed or encoded; send plain JSON', 'content_encoding');
  const json = parseStrictJson(bytes);
  if (!json.ok) throw refuse(json.reason, `the message is refused: ${json.message}`);
  if (!isRecord(json.value)) throw refuse('InvalidRequest', 'the message must be a JSON object', 'body');
  const given = withoutNulls(json.value);
  if (given['schema_version'] !== jobRequestVersion)
    throw refuse('UnknownVersion', `schema_version must be "${jobRequestVersion}"`, 'schema_version');
  const request = checked(given);
  const folded = {
    ...request,
    request_id: request.request_id.toLowerCase(),
    commit_sha: request.commit_sha.toLowerCase(),
  };
  const { submitted_at: _time, ...compared } = folded;
  return { request: folded, digest: hash(canonicalJson(compared)) };
}

const plainEncodings = new Set(['', 'identity', 'utf-8', 'utf8']);

/** An empty label is none. */
function withoutNulls(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).filter(([key, value]) => value !== null && !(key === 'runs_on' && value === '')),
  );
}

function checked(given: Record<string, unknown>): JobRequest {
  try {
    const request = parse(JobRequest, given);
    if (Number.isNaN(Date.parse(request.submitted_at)))
      throw refuse('InvalidRequest', 'submitted_at is not a time that exists', 'submitted_at');
    return request;
  } catch (error) {
    if (error instanceof ApiError && error.details === undefined)
      throw refuse('InvalidRequest', error.message, error.field);
    throw error;
  }
}

export interface AcceptInput extends ReadRequest {
  readonly project: string;
  readonly replyTo?: string | undefined;
  readonly correlationId?: string | undefined;
  /** Whether a JobResult goes back; default: it does. */
  readonly answered?: boolean;
}

/**
 * `changed`: a new job. Else the message repeats one whose job there is, or was. Throws `ApiError` with a `Refusal`, and
 * as other operations do.
 */
export function acceptJobRequest(snapshot: Snapshot, input: AcceptInput, ctx: Context): Decision {
  const { project, request, digest } = input;
  const name = jobNameOf(request.request_id);
  const key = keys.job(project, name);
  const rememberedAt = keys.idempotency(project, `jobrequest.${request.request_id}`);
  const job = snapshot.get('job', key);
  const remembered = snapshot.get('idempotency', rememberedAt);
  const known = job?.value.spec.request?.digest ?? remembered?.value.fingerprint;
  const found = job ?? remembered;
  if (found) {
    if (known === digest) return { plan: unchanged(found), key, changed: false };
    throw refuse(
      'RequestIdReused',
      `request_id ${request.request_id} was used for another request; take a new id`,
      'request_id',
    );
  }
  const { decision, id } = created(snapshot, { input, name }, ctx);
  return {
    ...decision,
    plan: {
      ...decision.plan,
      changes: [
        ...decision.plan.changes,
        {
          key: rememberedAt,
          ifRevision: 0,
          value: { kind: 'idempotency', resourceKey: key, resourceId: id, fingerprint: digest, createdAtMs: ctx.nowMs },
        },
      ],
    },
  };
}

/** The job of a request bears its id, so that it stays unique for as long as the record does. */
export function jobNameOf(requestId: string): string {
  return `req-${requestId}`;
}

function created(
  snapshot: Snapshot,
  { input, name }: { readonly input: AcceptInput; readonly name: string },
  ctx: Context,
): { readonly decision: Decision; readonly id: string } {
  const { project, request } = input;
  if (!snapshot.imageByName(imageWordOf({ label: request.runs_on })))
    throw refuse(
      'UnknownLabel',
      request.runs_on === undefined
        ? 'the message has no runs_on, and there is no default label'
        : `runs_on "${request.runs_on}" is neither an alias nor a name of an image`,
      'runs_on',
    );
  const decision = submitJob(snapshot, { project, name, labels: {}, spec: jobSpecOf(input) }, ctx);
  const made = decision.plan.changes.find((change) => change.key === decision.key)?.value;
  return { decision, id: made && 'metadata' in made ? made.metadata.id : '' };
}

/** What the schema of a request has checked is not checked again. */
function jobSpecOf({ request, digest, replyTo, correlationId, answered = true }: AcceptInput): JobSpec {
  const { repo_url: url, commit_sha: commit, workflow_path: path, runs_on: label } = request;
  return {
    ...defaults,
    ...(label === undefined ? {} : { label }),
    repo: { url, commit, ...(path === undefined ? {} : { path }) },
    ...(answered
      ? {
          request: {
            requestId: request.request_id,
            source: request.source,
            ...(request.workflow_job_id === undefined ? {} : { workflowJobId: request.workflow_job_id }),
            submittedAt: request.submitted_at,
            ...(replyTo === undefined ? {} : { replyTo }),
            ...(correlationId === undefined ? {} : { correlationId }),
            digest,
          },
        }
      : {}),
  };
}

const defaults = parse(JobSpec, {});
