// The hash of a plan of a workload: what its user agrees to, in three parts, so that a refusal can say which part has changed although the
// plan was never stored. Times, scores and texts are not part of it.

import { ApiError } from '../../api/errors.ts';
import type { Workload } from '../../api/resources/workload.ts';
import { canonicalJson } from '../../base/json/canonical-json.ts';
import { sha256 } from '../../base/sha256.ts';

export interface AgreedParts {
  readonly workload: Workload;
  /** The verb, and what is asked for. */
  readonly request: unknown;
  /** The copies that are created, removed or replaced. */
  readonly copies: unknown;
}

/** Hex digits of each part, in order: together 32, as of every plan. */
const digits = { workload: 10, request: 10, copies: 12 } as const;

export function workloadPlanHash({ workload: { metadata }, request, copies }: AgreedParts): string {
  const { id, generation } = metadata;
  return part({ id, generation }, digits.workload) + part(request, digits.request) + part(copies, digits.copies);
}

function part(agreed: unknown, length: number): string {
  return sha256(canonicalJson(agreed)).slice(0, length);
}

export interface CurrentPlan {
  readonly verb: 'scale' | 'undo' | 'update';
  readonly workload: Workload;
  readonly hash: string;
  /** What happens to the copies: `3 are created` */
  readonly copiesText: string;
}

/** Throws `Conflict` when `apply` is the hash of another plan, saying what differs. */
export function assertWorkloadPlan(apply: string, { verb, workload, hash, copiesText }: CurrentPlan): void {
  if (apply === hash) return;
  const { metadata, spec, status } = workload;
  const [workloadEnd, requestEnd] = [digits.workload, digits.workload + digits.request];
  const isSame = (from: number, to: number): boolean => apply.slice(from, to) === hash.slice(from, to);
  const difference =
    apply.length !== hash.length
      ? 'that plan is not known'
      : !isSame(0, workloadEnd)
        ? `the workload was changed meanwhile: it has revision ${status.revision}${spec.perHost ? '' : ` and replicas ${spec.replicas}`}`
        : !isSame(workloadEnd, requestEnd)
          ? 'the request is another than that of the plan'
          : `other copies are affected: now ${copiesText}`;
  throw new ApiError(
    'Conflict',
    `the plan to ${verb} workload "${metadata.name}" is no longer as it was shown: ${difference}; look at the plan again`,
    { field: 'apply', details: { difference: [difference], hash } },
  );
}

const namesMax = 5;

/** `web-0, web-1 and 3 more` */
export function someNames(names: readonly string[]): string {
  const more = names.length - namesMax;
  return `${names.slice(0, namesMax).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
