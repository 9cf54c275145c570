// Verdicts: the combined result of all rules of one kind on a host. Scores are summed in registry order and only here,
// so that every strategy computes the same number. The codes of reasons are the one table of this file that outlives a
// call: they number the reasons in order of appearance, are never compared across processes and change no answer.

import type { Fleet } from '../fleet.ts';
import type { GroupPlugin, GroupRule, Plugin, Refusal, Rule } from '../framework.ts';
import type { Slot } from './slot.ts';
import type { Request } from '../request.ts';

/** Used instead of a score for a slot without a host. Hosts that a rule refuses have lower numbers. */
export const refused = -1;

interface Filtering {
  readonly plugin: string;
  readonly filter: NonNullable<Rule['filter']>;
}

interface Scoring {
  readonly plugin: string;
  readonly weight: number;
  readonly score: NonNullable<Rule['score']>;
}

/** The rules that apply to a request. */
export interface Rules {
  readonly filters: readonly Filtering[];
  readonly scores: readonly Scoring[];
}

export function prepareRules(plugins: readonly Plugin[], request: Request, fleet: Fleet): Rules {
  const filters: Filtering[] = [];
  const scores: Scoring[] = [];
  for (const plugin of plugins) {
    const rule: Rule | null = plugin.prepare(request, fleet);
    if (!rule) continue;
    const { filter, score } = rule;
    if (filter) filters.push({ plugin: plugin.name, filter });
    const weight = request.weights[plugin.name] ?? 0;
    if (score && weight > 0) scores.push({ plugin: plugin.name, weight, score });
  }
  return { filters, scores };
}

/** The weighted sum of the scores, 0 or more; below 0, the code of the reason that refuses the host (`reasonOf`). */
export function judge({ filters, scores }: Rules, slot: Slot): number {
  for (const { filter } of filters) {
    const refusal = filter(slot);
    if (refusal) return codeOf(refusal.reason);
  }
  let sum = 0;
  for (const { weight, score } of scores) sum += weight * inSteps(score(slot));
  return sum;
}

// Reasons as negative numbers, so that a score and a refusal share one column, and reasons are counted without evaluating rules again.
// Rules have a few dozen of them.

const reasons: string[] = [];
const codes = new Map<string, number>();
/** The same reason mostly occurs many times in a row. */
let lastReason = '';
let lastCode = refused;

function codeOf(reason: string): number {
  if (reason === lastReason) return lastCode;
  lastReason = reason;
  let code = codes.get(reason);
  if (code === undefined) codes.set(reason, (code = refused - reasons.push(reason)));
  return (lastCode = code);
}

/** The reason behind a verdict below 0; undefined for `refused`, which belongs to no rule: the slot has no host. */
export function reasonOf(verdict: number): string | undefined {
  return reasons[refused - 1 - verdict];
}

/** Rounds to 1/1024, so that sums of weighted scores are exact and do not depend on their order. */
export function inSteps(score: number): number {
  return Math.round(score * 1024) / 1024;
}

/** The rules about groups, and what is known about them without evaluating single hosts. */
export interface GroupRules extends Rules {
  /** Hosts to examine first; null when no rule names any. */
  readonly shortlist: readonly Slot[] | null;
  /** The highest score outside the shortlist; null when all hosts outside it are refused. */
  readonly scoreMaxElsewhere: number | null;
  /** Filters with the same verdict for all hosts of a domain; `only`: the other filters and the scores have it, too. */
  readonly uniform: { readonly by: string; readonly rules: Rules; readonly only: boolean } | null;
  /** Their verdict on a host depends only on the members on that host. */
  readonly perHost: boolean;
  /** And on these numbers, which are the same for all hosts. */
  readonly given: string;
  /** The reason that refuses every host; null when there is none known. */
  readonly nowhere: Refusal | null;
}

/** Null when no rule applies. */
export function prepareGroupRules(plugins: readonly GroupPlugin[], request: Request, fleet: Fleet): GroupRules | null {
  let any = false;
  const filters: Filtering[] = [];
  const scores: Scoring[] = [];
  let required: readonly Slot[] | null = null;
  const preferred: Slot[] = [];
  let scoreMaxElsewhere = 0;
  let uniformBy: string | undefined;
  const uniform: Filtering[] = [];
  let uniformOnly = true;
  let perHost = true;
  let given = '';
  let nowhere: Refusal | null = null;
  for (const plugin of plugins) {
    const rule: GroupRule | null = plugin.prepare(request, fleet);
    if (!rule) continue;
    any = true;
    const { filter, score, shortlist } = rule;
    if (filter) filters.push({ plugin: plugin.name, filter });
    nowhere ??= rule.nowhere?.() ?? null;
    uniformBy ??= rule.uniformBy;
    perHost &&= rule.perHost ?? false;
    if (rule.given !== undefined) given += `${plugin.name} ${rule.given} `;
    if (uniformBy === undefined || rule.uniformBy !== uniformBy) uniformOnly = false;
    else if (filter) uniform.push({ plugin: plugin.name, filter });
    const weight = request.weights[plugin.name] ?? 0;
    if (score && weight > 0) {
      scores.push({ plugin: plugin.name, weight, score });
      scoreMaxElsewhere += weight * inSteps(rule.scoreMaxElsewhere ?? 100);
    }
    if (shortlist && rule.scoreMaxElsewhere === null) {
      if (!required || shortlist.length < required.length) required = shortlist;
    } else if (shortlist) preferred.push(...shortlist);
  }
  if (!any) return null;
  return {
    filters,
    scores,
    shortlist: required ?? (preferred.length > 0 ? preferred : null),
    scoreMaxElsewhere: required ? null : scoreMaxElsewhere,
    uniform:
      uniformBy === undefined ? null : { by: uniformBy, rules: { filters: uniform, scores: [] }, only: uniformOnly },
    perHost,
    given,
    nowhere,
  };
}
