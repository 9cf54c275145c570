// What blocks an upgrade, from the facts about a fleet, its store and the new version. Pure.

import { agentMinorsBehindMax, agentSkew, oldestAgentOf, serverSkew } from './version-skew.ts';

export interface UpgradeFacts {
  /** The new version, and the newest schema version of records that it knows. */
  readonly target: { readonly version: string; readonly recordsVersion: number };
  /** The servers that use the store, as far as known. */
  readonly servers: readonly { readonly name: string; readonly version?: string }[];
  /** Why the server that was asked is not ready. */
  readonly notReady?: string;
  /** `recordsVersion`: absent when no server has used the store, or the server that was asked does not report it. */
  readonly store: {
    readonly recordsVersion?: number;
    readonly closed?: string;
    /** Sentences about records that the target cannot read. */
    readonly unreadable: readonly string[];
    /** The number of records with an older schema version; absent: not counted. */
    readonly older?: number;
  };
  readonly hosts: readonly { readonly name: string; readonly agentVersion?: string; readonly ready: boolean }[];
}

export interface UpgradeFinding {
  /** `blocks`: do not upgrade before this is resolved. */
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

/** Blocking findings come first. */
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
      advice: 'fix this first: the upgrade does not fix it',
    });
  if (store.closed !== undefined)
    found.push({
      level: 'blocks',
      code: 'StoreClosed',
      message: `the store is closed to servers: ${store.closed}`,
      advice: 'finish the restore or the store migration, or start the servers with the store that is open',
    });
  for (const message of store.unreadable) found.push({ level: 'blocks', code: 'RecordUnreadable', message });
  if (store.recordsVersion !== undefined && store.recordsVersion > target.recordsVersion)
    found.push({
      level: 'blocks',
      code: 'StoreIsNewer',
      message: `the store may contain records of schema version ${store.recordsVersion}, and Berth ${target.version} only knows ${target.recordsVersion}: its servers would refuse to start`,
      advice: 'to downgrade, restore a backup that was made before the upgrade',
    });
  if (store.recordsVersion !== undefined && store.recordsVersion < target.recordsVersion)
    found.push({
      level: 'note',
      code: 'StoreChangesForm',
      message: `the first server of ${target.version} marks the store with schema version ${target.recordsVersion} (now ${store.recordsVersion}): from then on, servers of earlier versions write nothing`,
      advice:
        'make a backup first, then restart all servers with the new version, one after the other, without a pause',
    });
  if (store.older !== undefined && store.older > 0)
    found.push({
      level: 'note',
      code: 'RecordsAreOlder',
      message: `${store.older} records have an older schema version: they can be read, and are rewritten when they change`,
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
            message: `server "${name}" has version ${version}: servers of ${target.version} only work with servers that are one minor version older`,
            advice:
              'upgrade through each minor version between, or stop all servers and start them with the new version',
          },
        ];
      case 'tooNew':
        return [
          {
            level: 'blocks',
            code: 'ServerIsNewer',
            message: `server "${name}" has version ${version}, and ${target.version} is more than one minor version older`,
            advice: 'downgrade by at most one minor version, or restore a backup that was made before the upgrade',
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
      message: `${agentsText(heard)}: servers of ${server} refuse agents that are more than ${agentMinorsBehindMax} minor versions older`,
      advice: `first upgrade these agents to ${oldestAgentOf(server)} or newer, to a version that the current servers accept`,
    });
  if (silent.length > 0)
    found.push({
      level: 'note',
      code: 'AgentTooOld',
      message: `${agentsText(silent)}, silent now: servers of ${server} will refuse ${silent.length === 1 ? 'it' : 'them'}`,
      advice:
        silent.length === 1
          ? 'upgrade it before it returns, or remove the host'
          : 'upgrade them before they return, or remove the hosts',
    });
  const tooNew = bySkew('tooNew');
  if (tooNew.length > 0)
    found.push({
      level: 'blocks',
      code: 'AgentIsNewer',
      message: `${agentsText(tooNew)}: servers of ${server} refuse agents of a later major version`,
      advice: 'for a downgrade, downgrade the agents first',
    });
  const newer = bySkew('newer');
  if (newer.length > 0)
    found.push({
      level: 'note',
      code: 'AgentIsNewer',
      message: `${agentsText(newer)}: servers of ${server} ignore fields of newer agents that they do not know`,
      advice: 'for a downgrade, downgrade the agents first',
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

/** `the agent of host "a" has version 0.1.0`; `3 agents have version 0.1.0, 0.2.0 (hosts "a", "b", "c")`. */
function agentsText(hosts: readonly Agent[]): string {
  const [first] = hosts;
  const versions = [...new Set(hosts.map(({ agentVersion }) => agentVersion))].sort().join(', ');
  if (hosts.length === 1 && first) return `the agent of host "${first.name}" has version ${versions}`;
  const named = hosts.slice(0, namedMax).map(({ name }) => `"${name}"`);
  const more = hosts.length > namedMax ? ` and ${hosts.length - namedMax} more` : '';
  return `${hosts.length} agents have version ${versions} (hosts ${named.join(', ')}${more})`;
}
