// What an update of a workload does to its copies, in words.

import type { RolloutPlan } from '../../api/plans/rollout-plan.ts';
import { copiesText, paceText } from '../../api/plans/rollout-text.ts';

const hostsMax = 20;

/** What happens to the copies, and on which hosts. */
export function copyLines(plan: RolloutPlan): string[] {
  const { replaced, kept, created, removed, hosts, paused } = plan;
  const shown = hosts.slice(0, hostsMax).map(({ host, copies }) => `${host ?? 'without a host'}: ${copies}`);
  const where = hosts.length > hostsMax ? [...shown, `${hosts.length - hostsMax} more hosts`] : shown;
  return [
    ...(created > 0 ? [`${copiesText(created)} created`] : []),
    ...removed.map((instance) => `${instance} removed`),
    ...(replaced > 0
      ? [
          `${copiesText(replaced)} replaced${kept > 0 ? `, ${kept} kept` : ''}; ${paceText(plan)}`,
          `now on ${where.join(', ')}`,
        ]
      : []),
    ...(replaced > 0 && paused ? ['the workload is paused: nothing is replaced until it is resumed'] : []),
  ];
}
