// Reads a page of the audit log, oldest first.

import type { AuditRecord } from '../../api/audit/audit-log.ts';
import { AuditRecord as AuditRecordSchema } from '../../api/audit/audit-log.ts';
import { parse } from '../../api/parse.ts';
import { readLines } from './read-lines.ts';

export interface AuditSearch {
  readonly fromSeq: number;
  readonly sinceMs: number;
  /** `ci` is found as `token/ci`, too. */
  readonly who?: string | undefined;
  /** A name, or an id. */
  readonly object?: string | undefined;
  readonly trace?: string | undefined;
  readonly limit: number;
  /** Whether the caller may see it. */
  readonly sees: (record: AuditRecord) => boolean;
}

export interface AuditPage {
  readonly items: readonly AuditRecord[];
  /** Absent: there is no more. */
  readonly nextSeq?: number;
}

export async function searchLog(directory: string, search: AuditSearch): Promise<AuditPage> {
  const { fromSeq, limit } = search;
  const items: AuditRecord[] = [];
  for await (const { fields, torn } of readLines(directory, { fromSeq })) {
    if (torn || fields === undefined || !isWanted(fields, search)) continue;
    const record = parse(AuditRecordSchema, fields);
    if (!search.sees(record)) continue;
    if (items.length === limit) return { items, nextSeq: record.seq };
    items.push(record);
  }
  return { items };
}

function isWanted(fields: Readonly<Record<string, unknown>>, { sinceMs, who, object, trace }: AuditSearch): boolean {
  const { time, who: by, tokenId, user, object: name, objectId } = fields;
  if (sinceMs > 0 && Date.parse(String(time)) < sinceMs) return false;
  if (trace !== undefined && fields['trace'] !== trace) return false;
  if (who !== undefined && ![by, String(by).split('/')[1], tokenId, user].includes(who)) return false;
  return object === undefined || name === object || objectId === object;
}
