// The checkers: one line each, first those of the invariants in their order. What watches deliver is compared with the history where it is
// read: watch.ts (tenants), store-watch.ts (control planes), assignment-watch.ts (agents).

import { acceptedChecker } from './accepted.ts';
import { allocationChecker } from './allocation.ts';
import { capacityChecker } from './capacity.ts';
import { churnChecker } from './churn.ts';
import type { Checker, Facts } from './checker.ts';
import { copiesChecker } from './copies.ts';
import { deliveriesChecker } from './edges/deliveries.ts';
import { diskHeldChecker } from './disk-held.ts';
import { drainsChecker } from './plans/drains.ts';
import { dueChecker } from './due.ts';
import { eligibleChecker } from './eligible.ts';
import { idempotencyChecker } from './idempotency.ts';
import { jobsChecker } from './jobs.ts';
import { limitsChecker } from './limits.ts';
import { logsChecker } from './logs.ts';
import { lifetimesChecker } from './workloads/lifetimes.ts';
import { leftoversChecker } from './leftovers.ts';
import { migrationsChecker } from './migrations.ts';
import { messagesChecker } from './messages.ts';
import { monotonicChecker } from './monotonic.ts';
import { outsideChecker } from './edges/outside.ts';
import { quotaChecker } from './quota.ts';
import { outageChecker } from './outage.ts';
import { refusedChecker } from './refused.ts';
import { replacementsChecker } from './replacements.ts';
import { resizesChecker } from './plans/resizes.ts';
import { restartChecker } from './restart.ts';
import { revisionsChecker } from './revisions.ts';
import { schedulesChecker } from './edges/schedules.ts';
import { silenceChecker } from './silence.ts';
import { sparesChecker } from './edges/spares.ts';
import { taskMessagesChecker } from './edges/task-messages.ts';
import { toldStartChecker } from './told-start.ts';
import { warmPoolsChecker } from './workloads/warm-pools.ts';
import { updatesChecker } from './workloads/updates.ts';
import { undisturbedChecker } from './undisturbed.ts';
import { volumesChecker } from './volumes.ts';
import { workloadsChecker } from './workloads/workloads.ts';

export const checkers: readonly ((facts: Facts) => Checker)[] = [
  capacityChecker,
  copiesChecker,
  acceptedChecker,
  idempotencyChecker,
  allocationChecker,
  revisionsChecker,
  monotonicChecker,
  leftoversChecker,
  restartChecker,
  toldStartChecker,
  eligibleChecker,
  churnChecker,
  limitsChecker,
  quotaChecker,
  diskHeldChecker,
  dueChecker,
  outageChecker,
  undisturbedChecker,
  silenceChecker,
  refusedChecker,
  volumesChecker,
  workloadsChecker,
  updatesChecker,
  drainsChecker,
  warmPoolsChecker,
  jobsChecker,
  messagesChecker,
  logsChecker,
  deliveriesChecker,
  schedulesChecker,
  outsideChecker,
  taskMessagesChecker,
  sparesChecker,
  replacementsChecker,
  migrationsChecker,
  resizesChecker,
  lifetimesChecker,
];
