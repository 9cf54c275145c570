import { describe, expect, it } from 'vitest';
import { type UpgradeFacts, upgradeFindings } from './findings.ts';

const facts: UpgradeFacts = {
  target: { version: '0.6.0', recordsVersion: 3 },
  servers: [{ name: 'cp1', version: '0.5.2' }],
  store: { recordsVersion: 3, unreadable: [] },
  hosts: [{ name: 'h1', agentVersion: '0.5.2', ready: true }],
};
const host = (name: string, agentVersion: string, ready = true) => ({ name, agentVersion, ready });

describe('what blocks an upgrade', () => {
  it.each<[string, Partial<UpgradeFacts>, string[]]>([
    ['nothing', {}, []],
    ['a store without servers so far', { servers: [], hosts: [], store: { unreadable: [] } }, []],
    ['an agent three versions behind', { hosts: [host('h1', '0.3.0')] }, ['blocks AgentTooOld']],
    ['a silent agent three versions behind', { hosts: [host('h1', '0.3.0', false)] }, ['note AgentTooOld']],
    ['an agent two versions behind', { hosts: [host('h1', '0.4.0')] }, []],
    ['an agent that is newer', { hosts: [host('h1', '0.7.0')] }, ['note AgentIsNewer']],
    ['an agent of the next major version', { hosts: [host('h1', '1.0.0')] }, ['blocks AgentIsNewer']],
    ['an agent of a developer', { hosts: [host('h1', 'sim')] }, ['note VersionUnknown']],
    ['a host without an agent', { hosts: [{ name: 'h1', ready: false }] }, []],
    ['a server two versions behind', { servers: [{ name: 'cp1', version: '0.4.0' }] }, ['blocks ServerTooOld']],
    ['a server that does not tell its version', { servers: [{ name: 'cp1' }] }, []],
    ['a server one version ahead', { servers: [{ name: 'cp1', version: '0.7.0' }] }, []],
    ['a server two versions ahead', { servers: [{ name: 'cp1', version: '0.8.0' }] }, ['blocks ServerIsNewer']],
    ['a store of an older form', { store: { recordsVersion: 2, unreadable: [] } }, ['note StoreChangesForm']],
    ['a store of a newer form', { store: { recordsVersion: 4, unreadable: [] } }, ['blocks StoreIsNewer']],
    [
      'a record that cannot be read',
      { store: { unreadable: ['the record at a is not JSON'] } },
      ['blocks RecordUnreadable'],
    ],
    [
      'a store in the middle of a restore',
      { store: { closed: 'a restore is in progress', unreadable: [] } },
      ['blocks StoreClosed'],
    ],
    ['a server that is not ready', { notReady: 'its store is unreachable' }, ['blocks ServerNotReady']],
  ])('%s', (_what, changes, found) => {
    expect(upgradeFindings({ ...facts, ...changes }).map(({ level, code }) => `${level} ${code}`)).toEqual(found);
  });

  it('names the hosts, and says what to do', () => {
    const hosts = 'abcdefg'.split('').map((name) => host(name, '0.2.0'));
    expect(upgradeFindings({ ...facts, hosts })[0]).toEqual({
      level: 'blocks',
      code: 'AgentTooOld',
      message:
        '7 agents have version 0.2.0 (hosts "a", "b", "c", "d", "e" and 2 more): servers of 0.6.0 refuse agents that are more than 2 minor versions older',
      advice: 'first upgrade these agents to 0.4 or newer, to a version that the current servers accept',
    });
  });
});
