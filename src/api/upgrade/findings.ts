// What stands in the way of an upgrade: from what is known of a fleet, its store and the version that is to come. Pure.

import { agentMinorsBehindMax, agentSkew, oldestAgentOf, serverSkew } from './version-skew.ts';

export interface UpgradeFacts {
  /** What is to be started: its version, and the newest form of records that it knows. */
  readonly target: { readonly version: string; readonly recordsVersion: number };
  /** The servers that are known to use the store. */
  readonly servers: readonly { readonly name: string; readonly version?: string }[];
  /** Why the server that was asked is not ready. */
  readonly notReady?: string;
  /** `recordsVersion`: absent when no server has used the store, or the server that was asked does not tell. */
  readonly store: {
    readonly recordsVersion?: number;
    readonly closed?: string;
    /** Sentences about records that the target cannot read. */
    readonly unreadable: readonly string[];
    /** The number of records in an older form; absent: not counted. */
    readonly older?: number;
  };
  readonly hosts: readonly { readonly name: string; readonly agentVersion?: string; readonly ready: boolean }[];
}

export interface UpgradeFinding {
  /** `blocks`: do not upgrade before this is settled. */
  readonly level: 'blocks' | 'note';
  readonly code: UpgradeFindingCode;
  readonly message: string;
  readonly advice?: string;
}

export type UpgradeFindingCode =
  | 'ServerNotReady'
  | 'StoreClosed'
  | 'StoreIsNewer'
  | 'RecordUnreadable'
  | 'StoreChangesForm'
  | 'RecordsAreOlder'
  | 'ServerTooOld'
  | 'ServerIsNewer'
  | 'AgentTooOld'
  | 'AgentIsNewer'
  | 'VersionUnknown';

/** What blocks comes first. */
export function upgradeFindings(facts: UpgradeFacts): readonly UpgradeFinding[] {
  const found = [...ofStore(facts), ...ofServers(facts), ...ofAgents(facts)];
  return [...found.filter(({ level }) => level === 'blocks'), ...found.filter(({ level }) => level === 'note')];
}

function ofStore({ target, store, notReady }: UpgradeFacts): UpgradeFinding[] {
  const found: UpgradeFinding[] = [];
  if (notReady !== undefined)
    found.push({
      level: 'blocks',
      code: 'ServerNotReady',
      message: `the server that was asked is not ready: ${notReady}`,
      advice: 'settle this first: an upgrade does not',
    });
  if (store.closed !== undefined)
    found.push({
      level: 'blocks',
      code: 'StoreClosed',
      message: `the store is closed to servers: ${store.closed}`,
      advice: 'finish the restore or the move, or start the servers with the store that is open',
    });
  for (const message of store.unreadable) found.push({ level: 'blocks', code: 'RecordUnreadable', message });
  if (store.recordsVersion !== undefined && store.recordsVersion > target.recordsVersion)
    found.push({
      level: 'blocks',
      code: 'StoreIsNewer',
      message: `the store may contain records of form ${store.recordsVersion}, and Berth ${target.version} knows ${target.recordsVersion}: its servers would refuse to start`,
      advice: 'to go back, restore a backup that was made before the upgrade',
    });
  if (store.recordsVersion !== undefined && store.recordsVersion < target.recordsVersion)
    found.push({
      level: 'note',
      code: 'StoreChangesForm',
      message: `the first server of ${target.version} marks the store (form ${store.recordsVersion} to ${target.recordsVersion}): servers of earlier versions write nothing from then on`,
      advice: 'back up first, and start all servers of the new version one after the other without a pause',
    });
  if (store.older !== undefined && store.older > 0)
    found.push({
      level: 'note',
      code: 'RecordsAreOlder',
      message: `${store.older} records are in an older form: they are read, and stored in the new form when they change`,
    });
  return found;
}

function ofServers({ target, servers }: UpgradeFacts): UpgradeFinding[] {
  return servers.flatMap(({ name, version }): UpgradeFinding[] => {
    if (version === undefined) return [];
    switch (serverSkew({ server: version, target: target.version })) {
      case 'tooOld':
        return [
          {
            level: 'blocks',
            code: 'ServerTooOld',
            message: `server "${name}" is of version ${version}: servers of ${target.version} work beside those of the minor version before it`,
            advice:
              'upgrade by way of each minor version between, or stop all servers and start them with the new version',
          },
        ];
      case 'tooNew':
        return [
          {
            level: 'blocks',
            code: 'ServerIsNewer',
            message: `server "${name}" is of version ${version}, and ${target.version} is more than one minor version older`,
            advice: 'go back by one minor version at most, or restore a backup that was made before the upgrade',
          },
        ];
      case 'unknown':
        return [unknown(`server "${name}" has the version "${version}", which cannot be compared`)];
      case 'works':
        return [];
    }
  });
}

function ofAgents({ target, hosts }: UpgradeFacts): UpgradeFinding[] {
  const { version: server } = target;
  const known = hosts.filter((host): host is Agent => host.agentVersion !== undefined);
  const bySkew = (skew: string): readonly Agent[] =>
    known.filter(({ agentVersion: agent }) => agentSkew({ agent, server }) === skew);
  const found: UpgradeFinding[] = [];
  const tooOld = bySkew('tooOld');
  const heard = tooOld.filter(({ ready }) => ready);
  const silent = tooOld.filter(({ ready }) => !ready);
  if (heard.length > 0)
    found.push({
      level: 'blocks',
      code: 'AgentTooOld',
      message: `${agentsText(heard)}: servers of ${server} refuse agents more than ${agentMinorsBehindMax} minor versions behind`,
      advice: `upgrade these agents to ${oldestAgentOf(server)} or newer first, as far as the servers that run now permit`,
    });
  if (silent.length > 0)
    found.push({
      level: 'note',
      code: 'AgentTooOld',
      message: `${agentsText(silent)}, silent now: it will be refused when it returns`,
      advice: 'upgrade it before it returns, or remove the host',
    });
  const tooNew = bySkew('tooNew');
  if (tooNew.length > 0)
    found.push({
      level: 'blocks',
      code: 'AgentIsNewer',
      message: `${agentsText(tooNew)}: servers of ${server} refuse agents of a later major version`,
      advice: 'to go back, put the agents back first',
    });
  const newer = bySkew('newer');
  if (newer.length > 0)
    found.push({
      level: 'note',
      code: 'AgentIsNewer',
      message: `${agentsText(newer)}: servers of ${server} ignore what they do not know of newer agents`,
      advice: 'to go back, put the agents back first',
    });
  const strange = bySkew('unknown');
  if (strange.length > 0) found.push(unknown(`${agentsText(strange)}, which cannot be compared`));
  return found;
}

interface Agent {
  readonly name: string;
  readonly agentVersion: string;
  readonly ready: boolean;
}

function unknown(message: string): UpgradeFinding {
  return { level: 'note', code: 'VersionUnknown', message };
}

const namedMax = 5;

/** `the agent of host "a" is of version 0.1.0`; `3 agents are of version 0.1.0, 0.2.0 (hosts "a", "b", "c")`. */
function agentsText(hosts: readonly Agent[]): string {
  const [first] = hosts;
  const versions = [...new Set(hosts.map(({ agentVersion }) => agentVersion))].sort().join(', ');
  if (hosts.length === 1 && first) return `the agent of host "${first.name}" is of version ${versions}`;
  const named = hosts.slice(0, namedMax).map(({ name }) => `"${name}"`);
  const more = hosts.length > namedMax ? ` and ${hosts.length - namedMax} more` : '';
  return `${hosts.length} agents are of version ${versions} (hosts ${named.join(', ')}${more})`;
}
