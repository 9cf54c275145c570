// Which rule admits the token of a workload. Nothing is admitted by default: every claim of a rule must match, and jobs of pull
// requests, which strangers can start, need a rule that names them.

import { type Claims, quoted } from './id-token.ts';
import type { WorkloadRule } from './oidc-config.ts';

/** Why the claims do not fulfil the rule; undefined: they do. */
export function whyNotAdmitted({ claims: wanted }: Pick<WorkloadRule, 'claims'>, claims: Claims): string | undefined {
  for (const [name, values] of Object.entries(wanted)) {
    const given = textOf(claims, name);
    if (given === undefined) return `the token has no claim ${name}`;
    if (![values].flat().some((value) => matchesWildcards(value, given)))
      return `its claim ${name} is ${quoted(given)}, which the rule does not name`;
  }
  return whyStranger(wanted, claims);
}

/** Where a CI system says what started a job. */
const startedBy = ['event_name', 'pipeline_source'] as const;

function whyStranger(wanted: WorkloadRule['claims'], claims: Claims): string | undefined {
  const starts = startedBy.flatMap((name) => textOf(claims, name) ?? []);
  if (starts.length === 0) return `the token does not say what started the job (${startedBy.join(' or ')})`;
  const ref = textOf(claims, 'ref_path') ?? textOf(claims, 'ref') ?? '';
  if (!starts.some(isRequest) && !requestRef.test(ref)) return undefined;
  // By its whole name: a wildcard was hardly meant for strangers.
  const named = startedBy.flatMap((name) => wanted[name] ?? []);
  if (named.some(isRequest) && starts.every((start) => named.includes(start))) return undefined;
  return `the job was started by ${quoted(starts[0])}: jobs of pull requests need a rule that names their event`;
}

/** GitHub and Forgejo: pull_request, pull_request_target and others; GitLab: those of merge requests. */
const isRequest = (start: string): boolean => /^(pull_request|merge_request|external_pull_request)/.test(start);
const requestRef = /^refs\/(pull|merge-requests)\//;

/** Ids are numbers with some systems, and texts with others. */
function textOf(claims: Claims, name: string): string | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === 'string') return value;
  return typeof value === 'boolean' || Number.isSafeInteger(value) ? String(value) : undefined;
}

/** `*` stands for any characters but `/` and `:`, with which systems put claims together. */
function matchesWildcards(pattern: string, text: string): boolean {
  let p = 0;
  /** The last `*`, and where its part of the text ends. */
  let star = -1;
  let end = 0;
  for (let t = 0; t < text.length; ) {
    if (pattern[p] === '*') {
      star = p++;
      end = t;
    } else if (p < pattern.length && pattern[p] === text[t]) {
      p += 1;
      t += 1;
    } else if (star >= 0 && text[end] !== '/' && text[end] !== ':') {
      p = star + 1;
      end += 1;
      t = end;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(p));
}
