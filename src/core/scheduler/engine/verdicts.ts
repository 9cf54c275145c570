// Verdicts: what all rules of one kind say together of a host. Scores are summed in the order of the registry, here and nowhere else, so
// that every way to a decision comes to the same number.

import type { Fleet } from '../fleet.ts';
import type { GroupPlugin, GroupRule, Plugin, Refusal, Rule } from '../framework.ts';
import type { Slot } from './slot.ts';
import type { Request } from '../request.ts';

/** In the place of a score where there is no host. Hosts that a rule refuses have lower numbers yet. */
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

/** The rules that have something to say on a request. */
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

/** The weighed sum of the scores, 0 and more; or, below 0, the code of the reason that refuses the host (`reasonOf`). */
export function judge({ filters, scores }: Rules, slot: Slot): number {
  for (const { filter } of filters) {
    const refusal = filter(slot);
    if (refusal) return codeOf(refusal.reason);
  }
  let sum = 0;
  for (const { weight, score } of scores) sum += weight * inSteps(score(slot));
  return sum;
}

// Reasons as negative numbers, so that a score and a refusal share one column and reasons are counted without asking again. Rules have
// a few dozen of them.

const reasons: string[] = [];
const codes = new Map<string, number>();
/** Most come in runs of one. */
let lastReason = '';
let lastCode = refused;

function codeOf(reason: string): number {
  if (reason === lastReason) return lastCode;
  lastReason = reason;
  let code = codes.get(reason);
  if (code === undefined) codes.set(reason, (code = refused - reasons.push(reason)));
  return (lastCode = code);
}

/** The reason behind a verdict below 0; undefined for `refused`, which is no rule's word: there is no such host. */
export function reasonOf(verdict: number): string | undefined {
  return reasons[refused - 1 - verdict];
}

/** In steps of 1/1024, so that sums of weighed scores are exact and do not hang on their order. */
export function inSteps(score: number): number {
  return Math.round(score * 1024) / 1024;
}

/** The rules about groups, and what is known of them without asking host by host. */
export interface GroupRules extends Rules {
  /** Hosts to look at first; null when no rule names any. */
  readonly shortlist: readonly Slot[] | null;
  /** No host outside the shortlist gets more; null: all of them are refused. */
  readonly scoreMaxElsewhere: number | null;
  /** Filters that say the same of all hosts of a domain; `only`: so do all the others, and the scores. */
  readonly uniform: { readonly by: string; readonly rules: Rules; readonly only: boolean } | null;
  /** What they say of a host hangs on who is on that host alone. */
  readonly perHost: boolean;
  /** And on these numbers, the same for all hosts. */
  readonly given: string;
  /** Why no host at all will do; null when that is not known. */
  readonly nowhere: Refusal | null;
}

/** Null when no rule has anything to say. */
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
