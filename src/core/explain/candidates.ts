// Candidates: hosts that would take a request, the best first, with the providers that would be used. The same rules as
// scheduling; nothing is claimed.

import type { Candidates } from '../../api/candidates.ts';
import { assign } from '../ledger/tree.ts';
import type { Snapshot } from '../state/snapshot.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { verdictsOf } from '../scheduler/engine/full-scan.ts';
import type { Request } from '../scheduler/request.ts';
import { bestFirst, scan } from './scan.ts';
import type { Steps } from '../scheduler/steps.ts';

export function* candidatesInSteps(snapshot: Snapshot, request: Request, limit: number): Steps<Candidates> {
  const fleet = fleetOf(snapshot);
  const { verdicts, fit, reasons } = yield* scan(fleet, request, (body) => body());
  const best = verdicts
    .filter(({ refusals }) => refusals === 0)
    .sort(bestFirst)
    .slice(0, limit);
  const verdictOn = verdictsOf(request, fleet);
  return {
    profile: request.profile,
    amounts: { ...request.assigned },
    counts: { hosts: verdicts.length, fit },
    candidates: best.flatMap(({ slot, host }) => {
      if (fleet.names[slot] !== host) return [];
      const { refusals, score, scores } = verdictOn(slot);
      const assignment = assign(fleet.tree(slot), request);
      return refusals.length === 0 && assignment.fits ? [{ host, score, scores, held: assignment.held }] : [];
    }),
    reasons: [...reasons],
  };
}
