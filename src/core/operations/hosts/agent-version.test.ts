import { describe, expect, it } from 'vitest';
import { version } from '../../../base/version.ts';
import { assertAgentWorks } from './agent-version.ts';

describe('the version of an agent that registers', () => {
  it.each([
    [
      '0.3.0',
      'the agent of host "h1" is of version 0.3.0, and this server of version 0.6.0: servers work with agents up to 2 minor versions behind them; upgrade the agent to 0.4 or newer',
    ],
    [
      '0.7.0',
      'the agent of host "h1" is of version 0.7.0, and this server of version 0.6.0: servers work with no agents newer than themselves; upgrade the servers first',
    ],
  ])('%s is refused', (agent, message) => {
    expect(() => assertAgentWorks('h1', agent, '0.6.0')).toThrow(
      expect.objectContaining({ code: 'InvalidRequest', field: 'agentVersion', message }),
    );
  });

  it.each(['0.6.9', '0.5.0', '0.4.0', 'test'])('%s works', (agent) => {
    expect(() => assertAgentWorks('h1', agent, '0.6.0')).not.toThrow();
  });

  it('is that of this program in tests of whole fleets', () => {
    expect(() => assertAgentWorks('h1', version)).not.toThrow();
  });
});
