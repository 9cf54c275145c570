// The trail of one request: the lines of the audit log about what it does. Each change has its own line, after its commit and before the
// answer; a request that changes nothing has one about itself.

import { ApiError } from '../../api/errors.ts';
import type { AuditFace } from '../../api/audit/audit-log.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Principal } from '../../core/access/principal.ts';
import { keys, kindOfKey } from '../../core/state/keys.ts';
import type { Plan, PlanAuthor } from '../../core/state/plan.ts';
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
  /** Keyed hash of a request's body. */
  readonly hashBody: (body: unknown) => string;
}

/** What a request is about, as far as that is known before it is decided. */
export type AuditSubject = Pick<AuditEntry, 'verb' | 'kind' | 'project' | 'object' | 'objectId' | 'body'>;

type Authored = { readonly plan: Plan };

const trails = new WeakMap<Caller, Trail>();

/** The trail of a caller's request; undefined: there is no audit log, or the request is not written down. */
export function trailOf(caller: Caller): Trail | undefined {
  return trails.get(caller);
}

/** Begins the trail of a request. */
export function openTrail(parts: AuditParts, caller: Caller, subject: AuditSubject): Trail {
  const trail = new Trail(parts, { ...callerFields(caller, parts.snapshot), ...subject });
  trails.set(caller, trail);
  return trail;
}

/** Does what a caller asks for, with at least one line about it before this resolves or rejects. Throws `AuditUnavailable` before it begins. */
export async function withLine<T>(
  parts: AuditParts,
  caller: Caller,
  subject: AuditSubject,
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

const authors = new WeakMap<Authored, PlanAuthor>();

/** Who asked for a decision; undefined: the audit log does not know them. */
export function authorOf(decision: Authored): PlanAuthor | undefined {
  return authors.get(decision);
}

export class Trail {
  readonly #parts: AuditParts;
  readonly #entry: AuditEntry;
  /** Of the newest decision. */
  #author: PlanAuthor | undefined;
  /** Shared by the branches of a trail. */
  readonly #told: { lines: number };

  constructor(parts: AuditParts, entry: AuditEntry, told = { lines: 0 }) {
    this.#parts = parts;
    this.#entry = entry;
    this.#told = told;
  }

  /** Whether there is a line already. */
  get isTold(): boolean {
    return this.#told.lines > 0;
  }

  /** For one of several things that a request asks for. */
  branch(): Trail {
    return new Trail(this.#parts, this.#entry, this.#told);
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
    const author = { entry: entryText({ ...this.#entry, ...objectOf(decision) }) };
    authors.set(decision, author);
    this.#author = author;
    return author;
  }

  /** What was decided is durable. Throws `AuditUnavailable` when its line cannot be written now: the change was made. */
  async done({ decision, revision }: Decided<Authored>): Promise<void> {
    const author = authors.get(decision) ?? this.decided(decision);
    const note = this.#parts.notes.numberOf(author);
    this.#told.lines += 1;
    try {
      await this.#parts.log.append(author.entry, { outcome: 'done', revision, note });
    } catch (cause) {
      const message = `the change was made, at revision ${revision}, but the audit log cannot be written; its line comes later`;
      throw new ApiError('AuditUnavailable', message, { cause });
    }
  }

  /** It was not done. Of several things that a request does, `error` is for the newest that was decided. */
  async failed(error: unknown): Promise<void> {
    const { log, notes, doubtful } = this.#parts;
    const author = this.#author;
    const entry = author?.entry ?? entryText(this.#entry);
    this.#told.lines += 1;
    if (typeof error === 'object' && error !== null) toldErrors.add(error);
    const { reason, outcome } = endOf(error);
    const isDoubtful = author !== undefined && notes.isDoubtful(author);
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
    this.#told.lines += 1;
    await this.#parts.log.append(entryText(this.#entry), { outcome: 'done' });
  }

  /** Something is about to happen that must not happen without a line: durable when this resolves. */
  async begins(subject?: Partial<AuditSubject>): Promise<void> {
    this.assertWritable();
    this.#told.lines += 1;
    await this.#parts.log.append({ ...this.#entry, ...subject }, { outcome: 'begun' }, { durable: true, first: true });
  }
}

function endOf(error: unknown): { outcome: 'refused' | 'failed'; reason: string } {
  if (!(error instanceof ApiError)) return { outcome: 'failed', reason: 'Internal' };
  return { outcome: error.status < 500 ? 'refused' : 'failed', reason: error.code };
}

/** Who calls, from where and how. */
export function callerFields(caller: Caller, snapshot: Snapshot): Omit<AuditEntry, 'verb'> {
  const { principal, requestId, address, face } = caller;
  return {
    request: requestId,
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
  const [, first = '', second] = key.split('/');
  const names = second === undefined ? { object: first } : { project: first, object: second };
  const value = decision.plan.changes.find((change) => change.key === key)?.value;
  const id = isRecord(value) && isRecord(value['metadata']) ? value['metadata']['id'] : undefined;
  return { ...(kind ? { kind } : {}), ...names, ...(typeof id === 'string' ? { objectId: id } : {}) };
}
