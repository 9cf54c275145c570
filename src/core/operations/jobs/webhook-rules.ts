// Which rules of a hook an event matches, and the commit status that the job of each reports to. Pure.

import type { Env } from '../../../api/resources/container.ts';
import type { ForgeEvent, ForgeEventName } from './webhook-event.ts';

export interface HookRule {
  /** `owner/*`. Letter case does not matter, as on the forges. */
  readonly repository: string;
  /** `main`, `release/*`; of a pull request: the branch to merge into. */
  readonly branches: readonly string[];
  /** `src/**`; absent: all. */
  readonly paths?: readonly string[];
  readonly events: readonly ForgeEventName[];
  readonly label?: string;
  readonly workflowPath?: string;
  readonly size?: string;
  readonly timeoutMs?: number;
  /** Not given to jobs of forks. */
  readonly env?: Env;
}

export interface MatchedRule {
  readonly rule: HookRule;
  /** Of the commit status: `berth/push/debian-12`. */
  readonly context: string;
}

/** In the order of the rules. Of several with the same label and workflow path the first counts. */
export function matchingRules(rules: readonly HookRule[], event: ForgeEvent): readonly MatchedRule[] {
  const byContext = new Map<string, MatchedRule>();
  for (const rule of rules) {
    const context = contextOf(rule, event.event);
    if (!byContext.has(context) && matches(rule, event)) byContext.set(context, { rule, context });
  }
  return [...byContext.values()];
}

function contextOf({ label, workflowPath }: HookRule, event: ForgeEventName): string {
  return ['berth', event, label ?? 'default', ...(workflowPath === undefined ? [] : [workflowPath])].join('/');
}

function matches(rule: HookRule, event: ForgeEvent): boolean {
  return (
    rule.events.includes(event.event) &&
    globMatches(rule.repository.toLowerCase(), event.repository.toLowerCase()) &&
    rule.branches.some((pattern) => globMatches(pattern, event.branch)) &&
    matchesPaths(rule.paths, event.paths)
  );
}

/** A list of files that is cut matches any rule: a job too many is better than one too few. */
function matchesPaths(patterns: readonly string[] | undefined, paths: readonly string[] | undefined): boolean {
  if (patterns === undefined || paths === undefined) return true;
  return paths.some((path) => patterns.some((pattern) => globMatches(pattern, path)));
}

/** `*` and `?` match within a part between slashes, `**` any number of parts. In time |pattern| × |text| at most. */
export function globMatches(pattern: string, text: string): boolean {
  return matchesSequence(pattern.split('/'), text.split('/'), { many: '**', one: matchesPart });
}

function matchesPart(pattern: string, part: string): boolean {
  return matchesSequence(Array.from(pattern), Array.from(part), { many: '*', one: (a, b) => a === '?' || a === b });
}

/** After a mismatch only the last `many` takes one more: trying the earlier ones again cannot help. */
function matchesSequence(
  pattern: readonly string[],
  text: readonly string[],
  { many, one }: { readonly many: string; readonly one: (pattern: string, text: string) => boolean },
): boolean {
  let at = 0;
  let star = -1;
  let taken = 0;
  for (let i = 0; i < text.length; ) {
    const wanted = pattern[at];
    if (wanted === many) {
      star = at++;
      taken = i;
    } else if (wanted !== undefined && one(wanted, text[i] ?? '')) {
      at += 1;
      i += 1;
    } else if (star >= 0) {
      at = star + 1;
      i = ++taken;
    } else return false;
  }
  while (pattern[at] === many) at += 1;
  return at === pattern.length;
}
