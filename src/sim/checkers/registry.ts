// The checkers: one line each. Watches (watch.ts) and caches (caches.ts) are held to the history where they are.

import { acceptedChecker } from './accepted.ts';
import { allocationChecker } from './allocation.ts';
import { capacityChecker } from './capacity.ts';
import { churnChecker } from './churn.ts';
import type { Checker, Facts } from './checker.ts';
import { copiesChecker } from './copies.ts';
import { diskHeldChecker } from './disk-held.ts';
import { dueChecker } from './due.ts';
import { eligibleChecker } from './eligible.ts';
import { idempotencyChecker } from './idempotency.ts';
import { limitsChecker } from './limits.ts';
import { monotonicChecker } from './monotonic.ts';
import { quotaChecker } from './quota.ts';
import { silenceChecker } from './silence.ts';
import { tracesChecker } from './traces.ts';
import { undisturbedChecker } from './undisturbed.ts';

export const checkers: readonly ((facts: Facts) => Checker)[] = [
  capacityChecker,
  copiesChecker,
  acceptedChecker,
  idempotencyChecker,
  allocationChecker,
  monotonicChecker,
  tracesChecker,
  eligibleChecker,
  churnChecker,
  limitsChecker,
  quotaChecker,
  diskHeldChecker,
  dueChecker,
  silenceChecker,
  undisturbedChecker,
];
