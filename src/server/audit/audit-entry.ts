// What a line of the audit log says, as text: who asked for what, and how it ended. Only names, ids and codes; never a field of a body, a
// token or a header.

import { hash } from 'node:crypto';
import type { AuditFace, AuditOutcome } from '../../api/audit/audit-log.ts';

/** What is known before the outcome. */
export interface AuditEntry {
  readonly request?: string | undefined;
  /** The id of the trace that the request is part of. */
  readonly trace?: string | undefined;
  readonly who?: string | undefined;
  readonly tokenId?: string | undefined;
  /** `provider/subject` of the person or the CI job that the token is for. */
  readonly user?: string | undefined;
  readonly address?: string | undefined;
  readonly face: AuditFace;
  readonly verb: string;
  readonly kind?: string | undefined;
  readonly project?: string | undefined;
  readonly object?: string | undefined;
  readonly objectId?: string | undefined;
  readonly body?: string | undefined;
}

export interface AuditEnd {
  readonly outcome: AuditOutcome;
  /** The code of the error that ended it. */
  readonly reason?: string | undefined;
  readonly revision?: number | undefined;
  readonly count?: number | undefined;
  readonly note?: number | undefined;
  readonly settles?: number | undefined;
  readonly recovered?: true | undefined;
  readonly head?: string | undefined;
}

/** Names come from outside, and a line must stay short. */
const textLengthMax = 200;

/** The fields of an entry as JSON, without the braces: they stand both in the store and in the file. */
export function entryText(entry: AuditEntry): string {
  const { object, project } = entry;
  const long = (object?.length ?? 0) > textLengthMax || (project?.length ?? 0) > textLengthMax;
  const short = long
    ? { ...entry, object: object?.slice(0, textLengthMax), project: project?.slice(0, textLengthMax) }
    : entry;
  return JSON.stringify(short).slice(1, -1);
}

export function endText(end: AuditEnd): string {
  return JSON.stringify(end).slice(1, -1);
}

/**
 * A keyed hash: who has two logs can tell equal bodies, and who has no key cannot guess a short one. Nearly half of the digest is left out,
 * so the hash of a longer body does not follow from it: one pass is enough, where HMAC needs two.
 */
export function bodyHash(key: string, json: string): string {
  return hash('sha256', key + json, 'base64url').slice(0, 22);
}

/** The hash of a line, with which the next one begins. */
export function lineHash(line: string): string {
  return hash('sha256', line, 'base64url');
}

/** What the first line of all follows. */
export const noHash = 'A'.repeat(43);
