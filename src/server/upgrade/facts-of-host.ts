// The facts about a host that an upgrade depends on.

import { isReady } from '../../core/state/conditions.ts';
import type { Host } from '../../api/resources/host.ts';
import type { UpgradeFacts } from '../../api/upgrade/findings.ts';

export function factsOfHost({ metadata: { name }, status }: Host): UpgradeFacts['hosts'][number] {
  const { agentVersion } = status;
  return { name, ...(agentVersion === undefined ? {} : { agentVersion }), ready: isReady(status) };
}
