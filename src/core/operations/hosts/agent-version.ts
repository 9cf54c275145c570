// Refuses agents that do not work with every server of the fleet (docs/upgrade.md): while servers are upgraded, two versions of them must not
// judge one agent differently. An agent that is refused carries on with what it was last told, and tries again.

import type { Heartbeat } from '../../../api/agent-protocol.ts';
import { ApiError } from '../../../api/errors.ts';
import { agentMinorsBehindMax, agentSkew, oldestAgentOf } from '../../../api/upgrade/version-skew.ts';
import { version } from '../../../base/version.ts';
import type { Snapshot } from '../../state/snapshot.ts';

/** Throws `InvalidRequest`. Versions that cannot be compared are those of developers and tests, and work. */
export function assertAgentWorks(host: string, agent: string, servers: readonly string[]): void {
  const message = refusal(host, agent, servers);
  if (message !== undefined) throw new ApiError('InvalidRequest', message, { field: 'agentVersion' });
}

/**
 * Why the host of an agent that registered with a server of another version takes no new instances. Its guests are left alone, and it is not
 * silent; it cannot register again.
 */
export function agentNotWorking(
  host: string,
  agent: string | undefined,
  servers: readonly string[],
): Heartbeat['notReady'] | undefined {
  const message = agent === undefined ? undefined : refusal(host, agent, servers);
  return message === undefined ? undefined : { stopping: false, message };
}

/** The versions of this server and of all that are announced. One that crashed counts until it is forgotten, or announces another version. */
export function serverVersions(snapshot: Snapshot, own = version): string[] {
  const versions = new Set([own]);
  for (const { value } of snapshot.list('member')) if (value.version !== undefined) versions.add(value.version);
  return [...versions];
}

/** A warning about an agent that works, but should have been upgraded after the servers. */
export function newerAgent(host: string, agent: string, server = version): string | undefined {
  if (agentSkew({ agent, server }) !== 'newer') return undefined;
  const why = 'what this server does not know of it is ignored; upgrade the servers first';
  return sentence({ host, agent, server, why });
}

function refusal(host: string, agent: string, servers: readonly string[]): string | undefined {
  for (const server of servers) {
    const why = whyRefused({ agent, server });
    if (why !== undefined) return sentence({ host, agent, server, why });
  }
  return undefined;
}

function whyRefused(versions: { readonly agent: string; readonly server: string }): string | undefined {
  switch (agentSkew(versions)) {
    case 'tooOld':
      return `servers work with agents up to ${agentMinorsBehindMax} minor versions behind them; upgrade the agent to ${oldestAgentOf(versions.server)} or newer`;
    case 'tooNew':
      return 'servers work with no agents of a later major version; upgrade the servers first';
    case 'newer':
    case 'works':
    case 'unknown':
      return undefined;
  }
}

interface Told {
  readonly host: string;
  readonly agent: string;
  readonly server: string;
  readonly why: string;
}

function sentence({ host, agent, server, why }: Told): string {
  return `the agent of host "${host}" is of version ${agent}, and a server of version ${server}: ${why}`;
}
