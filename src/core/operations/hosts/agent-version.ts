// Refuses agents that this server does not work with (docs/upgrade.md). An agent that is refused carries on with what it was last told, and tries again.

import { ApiError } from '../../../api/errors.ts';
import { agentMinorsBehindMax, agentSkew, oldestAgentOf } from '../../../api/upgrade/version-skew.ts';
import { version } from '../../../base/version.ts';

/** Throws `InvalidRequest`. Versions that cannot be compared are those of developers and tests, and work. */
export function assertAgentWorks(host: string, agent: string, server = version): void {
  const skew = agentSkew({ agent, server });
  if (skew === 'works' || skew === 'unknown') return;
  const why =
    skew === 'tooOld'
      ? `servers work with agents up to ${agentMinorsBehindMax} minor versions behind them; upgrade the agent to ${oldestAgentOf(server)} or newer`
      : `servers work with no agents newer than themselves; upgrade the servers first`;
  throw new ApiError(
    'InvalidRequest',
    `the agent of host "${host}" is of version ${agent}, and this server of version ${server}: ${why}`,
    { field: 'agentVersion' },
  );
}
