// The trail of one request: the lines of the audit log about what it does. Each change has its own line, after its commit and before the
// answer; a request that changes nothing has one about itself.

import { requestTraceId } from '../tracing/request-trace.ts';
import { ApiError } from '../../api/errors.ts';
import type { AuditFace } from '../../api/audit/audit-log.ts';
import type { Principal } from '../../core/access/principal.ts';
import { keys, kindOfKey } from '../../core/state/keys.ts';
import { newAuthor, type Plan, type PlanAuthor } from '../../core/state/plan.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Decided } from '../decide.ts';
import type { Caller } from '../http/caller.ts';
import { type AuditEntry, entryText } from './audit-entry.ts';
import type { AuditLog } from './audit-log.ts';
import type { AuditNotes } from './audit-notes.ts';
import type { DoubtfulChanges } from './doubtful-changes.ts';

/** What writes the audit log of this server. */
export interface AuditParts {
  readonly log: AuditLog;
  readonly notes: AuditNotes;
  readonly doubtful: DoubtfulChanges;
  readonly snapshot: Snapshot;
  /** Keyed hash of a request's body, as JSON. */
  readonly hashBody: (json: string) => string;
}

/** What a request is about, as far as that is known before it is decided. */
export type AuditSubject = Pick<AuditEntry, 'verb' | 'kind' | 'project' | 'object' | 'objectId'>;

/** Its body, as JSON: it is hashed when the entry is written out. */
interface WithBody {
  readonly body?: string | undefined;
}

type Authored = { readonly plan: Plan };

/** The trail of a caller's request; undefined: there is no audit log, or the request is not written down. */
export function trailOf(caller: Caller): Trail | undefined {
  return caller.trail instanceof Trail ? caller.trail : undefined;
}

/** Begins the trail of a request. */
export function openTrail(parts: AuditParts, caller: Caller, { body, ...subject }: AuditSubject & WithBody): Trail {
  const trail = new Trail(parts, { ...callerFields(caller, parts.snapshot), ...subject }, { caller, body });
  caller.trail = trail;
  return trail;
}

/** Does what a caller asks for, with at least one line about it before this resolves or rejects. Throws `AuditUnavailable` before it begins. */
export async function withLine<T>(
  parts: AuditParts,
  caller: Caller,
  subject: AuditSubject & WithBody,
  act: () => Promise<T> | T,
): Promise<T> {
  parts.log.assertWritable();
  const trail = openTrail(parts, caller, subject);
  try {
    const answer = await act();
    if (!trail.isTold) await trail.acted();
    return answer;
  } catch (error) {
    if (!trail.isTold) await trail.failed(error);
    throw error;
  }
}

/** Errors that have a line. */
const toldErrors = new WeakSet<object>();

export function isTold(error: unknown): boolean {
  return typeof error === 'object' && error !== null && toldErrors.has(error);
}

export class Trail {
  readonly #parts: AuditParts;
  readonly #known: AuditEntry;
  readonly #request: WithBody & { readonly caller: Caller };
  #told = false;

  constructor(parts: AuditParts, known: AuditEntry, request: WithBody & { readonly caller: Caller }) {
    this.#parts = parts;
    this.#known = known;
    this.#request = request;
  }

  /** With what takes a hash. */
  #entry(object?: Partial<AuditSubject>): AuditEntry {
    const { caller, body } = this.#request;
    const entry = { ...this.#known, ...object, trace: requestTraceId(caller) };
    return body === undefined ? entry : { ...entry, body: this.#parts.hashBody(body) };
  }

  /** Whether there is a line already. */
  get isTold(): boolean {
    return this.#told;
  }

  /** For a request that turns out to be somebody else's, as a webhook is once its signature is checked. */
  continueAs(caller: Caller, subject: AuditSubject): void {
    openTrail(this.#parts, caller, subject);
  }

  /** Throws `AuditUnavailable`. */
  assertWritable(): void {
    this.#parts.log.assertWritable();
  }

  /** Who asked for this decision: committed with its Plan. */
  decided(decision: Authored): PlanAuthor {
    return newAuthor(() => entryText(this.#entry(objectOf(decision))));
  }

  /**
   * What was decided by `author` is durable. Its line was written with its commit, unless the decision changed nothing. Throws, or rejects with,
   * `AuditUnavailable` when the line cannot be written now: the change was made.
   */
  done({ decision, revision }: Decided<Authored>, author = this.decided(decision)): Promise<void> | undefined {
    this.#told = true;
    switch (author.noted.line) {
      case 'written':
        return undefined;
      case 'comes-later':
        throw lineComesLater(revision, this.#parts.log.trouble);
      case 'none':
        return this.#append(author.entry(), revision);
    }
  }

  async #append(entry: string, revision: number): Promise<void> {
    try {
      await this.#parts.log.append(entry, { outcome: 'done', revision });
    } catch (cause) {
      throw lineComesLater(revision, cause);
    }
  }

  /** It was not done. `author` of the newest decision about it, if there was any. */
  async failed(error: unknown, author?: PlanAuthor): Promise<void> {
    const { log, doubtful } = this.#parts;
    const entry = author?.entry() ?? entryText(this.#entry());
    this.#told = true;
    if (typeof error === 'object' && error !== null) toldErrors.add(error);
    const { reason, outcome } = endOf(error);
    const isDoubtful = author?.noted.doubtful === true;
    let seq: number | undefined;
    try {
      seq = await log.append(entry, { outcome: isDoubtful ? 'unknown' : outcome, reason });
    } catch {
      // The request has failed anyway: what cannot be written now is written later.
    }
    if (isDoubtful) doubtful.add(author, seq);
  }

  /** Something without a decision was done. */
  async acted(): Promise<void> {
    this.#told = true;
    await this.#parts.log.append(this.#entry(), { outcome: 'done' });
  }

  /** Something is about to happen that must not happen without a line: durable when this resolves. */
  async begins(subject?: Partial<AuditSubject>): Promise<void> {
    this.assertWritable();
    this.#told = true;
    await this.#parts.log.append(this.#entry(subject), { outcome: 'begun' }, { durable: true, first: true });
  }
}

function lineComesLater(revision: number, cause: unknown): ApiError {
  const message = `the change was made, at revision ${revision}, but the audit log cannot be written; its line comes later`;
  return new ApiError('AuditUnavailable', message, { cause });
}

function endOf(error: unknown): { outcome: 'refused' | 'failed'; reason: string } {
  if (!(error instanceof ApiError)) return { outcome: 'failed', reason: 'Internal' };
  return { outcome: error.status < 500 ? 'refused' : 'failed', reason: error.code };
}

/** Who calls, from where and how. */
export function callerFields(
  { principal, requestId, address, face }: Caller,
  snapshot: Snapshot,
): Omit<AuditEntry, 'verb'> {
  return {
    request: requestId,
    trace: undefined, // its place
    ...principalFields(principal, snapshot),
    ...(address === '' ? {} : { address }),
    face: face satisfies AuditFace,
  };
}

function principalFields(principal: Principal, snapshot: Snapshot): Pick<AuditEntry, 'who' | 'tokenId' | 'user'> {
  switch (principal.kind) {
    case 'admin':
      return { who: 'admin' };
    case 'token': {
      const user = snapshot.get('token', keys.token(principal.name))?.value.spec.user;
      const { tokenId } = principal;
      return { who: `token/${principal.name}`, tokenId, ...(user ? { user: `${user.provider}/${user.subject}` } : {}) };
    }
    case 'host':
      return { who: `host/${principal.host}` };
    case 'intake':
      return { who: `intake/${principal.name}` };
    case 'anonymous':
      return {};
  }
}

/** The object of a decision that names its key. */
function objectOf(decision: Authored): Pick<AuditEntry, 'kind' | 'project' | 'object' | 'objectId'> {
  const key = 'key' in decision ? decision.key : undefined;
  if (typeof key !== 'string') return {};
  const kind = kindOfKey(key);
  const first = key.indexOf('/') + 1;
  const second = key.indexOf('/', first) + 1;
  const value = decision.plan.changes.find((change) => change.key === key)?.value;
  const objectId = value && 'metadata' in value ? value.metadata.id : undefined;
  if (second === 0) return { ...(kind ? { kind } : {}), object: key.slice(first), objectId };
  return { ...(kind ? { kind } : {}), project: key.slice(first, second - 1), object: key.slice(second), objectId };
}
