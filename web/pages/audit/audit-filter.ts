// The filter of the audit log, as the URL states it. Pure.

import type { AuditRecord } from '../../../src/api/audit/audit-log.ts';

export const spans = [
  { value: '1h', label: 'Last hour', ms: 3_600_000 },
  { value: '24h', label: 'Last day', ms: 86_400_000 },
  { value: '7d', label: 'Last 7 days', ms: 7 * 86_400_000 },
  { value: '30d', label: 'Last 30 days', ms: 30 * 86_400_000 },
] as const;

export interface AuditFilter {
  readonly since: (typeof spans)[number];
  /** Compared by the server, exactly. */
  readonly who: string;
  readonly object: string;
  readonly face: string;
  readonly outcome: string;
  /** A part of the verb or of the kind. */
  readonly verb: string;
}

export function auditFilterOf(search: URLSearchParams): AuditFilter {
  const of = (name: string): string => search.get(name)?.trim() ?? '';
  return {
    since: spans.find(({ value }) => value === of('since')) ?? spans[0],
    who: of('who'),
    object: of('object'),
    face: of('face'),
    outcome: of('outcome'),
    verb: of('verb'),
  };
}

/** Filters records that the server has already selected by time, who and object. */
export function isShown({ face, outcome, verb, kind = '' }: AuditRecord, filter: AuditFilter): boolean {
  return (
    (filter.face === '' || face === filter.face) &&
    (filter.outcome === '' || outcome === filter.outcome) &&
    (filter.verb === '' || `${verb} ${kind}`.toLowerCase().includes(filter.verb.toLowerCase()))
  );
}

export function objectText({ kind, project, object }: AuditRecord): string {
  return [kind, project, object].filter(Boolean).join('/') || '–';
}

export function auditCommand({ since, who, object }: AuditFilter): string {
  const quoted = (text: string): string =>
    /^[\w./@:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return [
    'berth audit log',
    ...(since.value === '1h' ? [] : [`--since ${since.value}`]),
    ...(who === '' ? [] : [`--who ${quoted(who)}`]),
    ...(object === '' ? [] : [`--object ${quoted(object)}`]),
  ].join(' ');
}
