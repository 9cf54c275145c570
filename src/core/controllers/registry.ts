// The controllers. A new one is a file and a line here.

import type { Controller } from './controller.ts';
import { drain } from './drain.ts';
import { expiry } from './expiry.ts';
import { fence } from './fence.ts';
import { garbage } from './garbage.ts';
import { hostHealth } from './host-health.ts';
import { hostLoss } from './host-loss.ts';
import { inventory } from './inventory.ts';
import { job } from './jobs/job.ts';
import { lostHost } from './lost-host.ts';
import { migration } from './migration.ts';
import { overdue } from './overdue.ts';
import { placement } from './placement.ts';
import { powerOn } from './power-on.ts';
import { restart } from './restart.ts';
import { spare } from './tasks/spare.ts';
import { task } from './tasks/task.ts';
import { token } from './token.ts';
import { warmPool } from './warm-pool.ts';
import { workload } from './workload.ts';
import { volume } from './volume.ts';

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
  volume,
  garbage,
  expiry,
  drain,
  migration,
  overdue,
  inventory,
  token,
];
