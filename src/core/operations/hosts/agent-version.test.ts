import { describe, expect, it } from 'vitest';
import { version } from '../../../base/version.ts';
import { conditionOf } from '../../state/conditions.ts';
import { keys } from '../../state/keys.ts';
import type { Member } from '../../state/records.ts';
import { addRecord, commitPlan, testCache, testContext, testHost } from '../../testing.ts';
import { heartbeat, sessionOf } from '../host.ts';
import { agentNotWorking, assertAgentWorks, newerAgent, serverVersions } from './agent-version.ts';

const tooOld =
  'the agent of host "h1" is of version 0.3.0, and a server of version 0.6.0: servers work with agents up to 2 minor versions behind them; upgrade the agent to 0.4 or newer';
const tooNew =
  'the agent of host "h1" is of version 1.0.0, and a server of version 0.6.0: servers work with no agents of a later major version; upgrade the servers first';
const newer =
  'the agent of host "h1" is of version 0.7.0, and a server of version 0.6.0: what this server does not know of it is ignored; upgrade the servers first';

describe('an agent of a version that does not work with the server', () => {
  it.each([
    ['0.3.0', tooOld],
    ['1.0.0', tooNew],
  ])('%s is refused when it registers, and takes no new instances when it is connected', (agent, message) => {
    expect(() => assertAgentWorks('h1', agent, ['0.6.0'])).toThrow(
      expect.objectContaining({ code: 'InvalidRequest', field: 'agentVersion', message }),
    );
    expect(agentNotWorking('h1', agent, ['0.6.0'])).toEqual({ stopping: false, message });
  });
});

describe('an agent that works with the server', () => {
  it.each([
    ['0.7.0', newer],
    ['0.6.9', undefined],
    ['0.5.0', undefined],
    ['0.4.0', undefined],
    ['test', undefined],
  ])('%s', (agent, warning) => {
    expect(() => assertAgentWorks('h1', agent, ['0.6.0'])).not.toThrow();
    expect(agentNotWorking('h1', agent, ['0.6.0'])).toBeUndefined();
    expect(newerAgent('h1', agent, '0.6.0')).toBe(warning);
  });

  it('is that of this program in tests of whole fleets', () => {
    expect(() => assertAgentWorks('h1', version, [version])).not.toThrow();
    expect(agentNotWorking('h1', undefined, [version])).toBeUndefined();
  });
});

describe('servers of two versions', () => {
  const member = (name: string, of: string | undefined): Member => ({
    ...{ kind: 'member', name, announcedAtMs: 0 },
    ...(of === undefined ? {} : { version: of }),
  });

  it('judge an agent alike: it must work with both', () => {
    const cache = testCache([member('cp1', '0.5.0'), member('cp2', '0.6.0'), member('cp3', undefined)]);
    const seenBy = ['0.5.0', '0.6.0'].map((own) => serverVersions(cache, own).toSorted());
    expect(seenBy).toEqual([
      ['0.5.0', '0.6.0'],
      ['0.5.0', '0.6.0'],
    ]);
    const [both = []] = seenBy;
    expect(agentNotWorking('h1', '0.3.0', both)).toEqual({ stopping: false, message: tooOld });
    expect(() => assertAgentWorks('h1', '0.3.0', both)).toThrow(tooOld);
    expect(agentNotWorking('h1', '0.4.0', both)).toBeUndefined();
  });

  it('do not make a host ready that the newer one has judged', () => {
    const cache = testCache(testHost('h1', { status: { agentVersion: '0.1.0' } }));
    addRecord(cache, member('cp2', '0.99.0'));
    commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, testContext()).plan);
    const host = cache.committed('host', keys.host('h1'))?.value;
    expect(conditionOf(host?.status.conditions ?? [], 'Ready')).toMatchObject({ reason: 'AgentNotReady' });
  });
});

describe('the server of a new version', () => {
  it.each([
    ['99.0.0', 'False', 'AgentNotReady'],
    [version, 'True', 'Test'],
  ])('looks at connected agents with their next heartbeat: %s', (agentVersion, status, reason) => {
    const cache = testCache(testHost('h1', { status: { agentVersion } }));
    commitPlan(cache, heartbeat(cache, { name: 'h1', heartbeat: { epoch: 1 } }, testContext()).plan);
    const host = cache.committed('host', keys.host('h1'))?.value;
    expect(conditionOf(host?.status.conditions ?? [], 'Ready')).toMatchObject({ status, reason });
    expect(cache.committed('lease', keys.lease('h1'))).toBeDefined(); // it is heard: nothing of it is lost
  });

  it.each([
    ['0.1.0', {}, undefined],
    ['0.1.0', { measured: ['VCPU'] }, true], // as agents of this checkout say
    ['0.2.0', {}, true],
  ])('offers an agent of %s with %j no more than it knows', (agentVersion, more, takesUsage) => {
    const [host] = testHost('h1', { status: { agentVersion, ...more } });
    expect(sessionOf(host, testContext()).takesUsage).toBe(takesUsage);
  });
});
