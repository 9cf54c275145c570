// The controllers. A new one is a file and a line here.

import type { Controller } from './controller.ts';
import { drain } from './hosts/drain.ts';
import { expiry } from './expiry.ts';
import { fence } from './hosts/fence.ts';
import { garbage } from './garbage.ts';
import { hostHealth } from './hosts/host-health.ts';
import { hostLoss } from './hosts/host-loss.ts';
import { inventory } from './hosts/inventory.ts';
import { job } from './jobs/job.ts';
import { jobTemplate } from './jobs/job-template.ts';
import { lostHost } from './hosts/lost-host.ts';
import { rebalance } from './hosts/rebalance.ts';
import { migration } from './migration.ts';
import { overdue } from './overdue.ts';
import { placement } from './placement.ts';
import { powerOn } from './power-on.ts';
import { restart } from './restart.ts';
import { restore } from './hosts/restore.ts';
import { roll } from './hosts/roll.ts';
import { spare } from './tasks/spare.ts';
import { task } from './tasks/task.ts';
import { token } from './token.ts';
import { warmPool } from './workloads/warm-pool.ts';
import { workload } from './workloads/workload.ts';
import { volume } from './volume.ts';
import { volumeSnapshots } from './volume-snapshots.ts';

export const controllers: readonly Controller[] = [
  placement,
  powerOn,
  hostHealth,
  lostHost,
  hostLoss,
  fence,
  restart,
  task,
  spare,
  workload,
  warmPool,
  job,
  jobTemplate,
  volume,
  volumeSnapshots,
  garbage,
  expiry,
  drain,
  restore,
  roll,
  rebalance,
  migration,
  overdue,
  inventory,
  token,
];
