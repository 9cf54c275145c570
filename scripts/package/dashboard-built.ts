// Whether the dashboard is built, which every package carries. `npm run` builds it first; a script that is started by itself does not.

import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** What is missing below `root`, and what to do; undefined: nothing. */
export function dashboardFault(root: string): string | undefined {
  const index = join(root, 'web/dist/index.html');
  return existsSync(index)
    ? undefined
    : `the dashboard is not built: there is no ${index}; run "npm run build:web" first`;
}

/** Ends the process with a message when the dashboard is missing. `script` is what was started. */
export function needDashboard(root: string, script: string): void {
  const fault = dashboardFault(root);
  if (fault === undefined) return;
  console.error(`${script}: ${fault}`);
  process.exit(1);
}
