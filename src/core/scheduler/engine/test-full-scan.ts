// The answer that the engine must give, computed by the full scan, for property tests.

import type { Fleet } from '../fleet.ts';
import { fullScan } from './full-scan.ts';
import type { Request } from '../request.ts';

/** The best host of the full scan; ties go to the lower name. */
export function plainAnswer(request: Request, fleet: Fleet): { host: string; score: number } | null {
  let best: { host: string; score: number } | null = null;
  for (const { host, refusals, score } of fullScan(request, fleet)) {
    if (refusals.length > 0) continue;
    if (!best || score > best.score || (score === best.score && host < best.host)) best = { host, score };
  }
  return best;
}
