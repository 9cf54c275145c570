import { describe, expect, it } from 'vitest';
import { agentSkew, oldestAgentOf, serverSkew, type Skew } from './version-skew.ts';

describe('the versions that work together', () => {
  it.each<[string, string, Skew | 'newer', Skew]>([
    // server, other: as its agent, as a server beside it
    ['0.6.1', '0.6.0', 'works', 'works'],
    ['0.6.0', '0.6.7', 'works', 'works'],
    ['0.6.0', '0.5.9', 'works', 'works'],
    ['0.6.0', '0.4.0', 'works', 'tooOld'],
    ['0.6.0', '0.3.9', 'tooOld', 'tooOld'],
    ['0.6.0', '0.7.0', 'newer', 'works'],
    ['0.6.0', '0.8.0', 'newer', 'tooNew'],
    ['1.0.0', '0.9.0', 'tooOld', 'tooOld'],
    ['1.0.0', '2.0.0', 'tooNew', 'tooNew'],
    ['0.6.0-rc.1', '0.5.0', 'works', 'works'],
    ['0.6.0', 'sim', 'unknown', 'unknown'],
    ['dev', '0.6.0', 'unknown', 'unknown'],
  ])('%s and %s', (server, other, asAgent, asServer) => {
    expect(agentSkew({ agent: other, server })).toBe(asAgent);
    expect(serverSkew({ server: other, target: server })).toBe(asServer);
  });

  it('names the oldest agents', () => {
    expect([oldestAgentOf('0.6.1'), oldestAgentOf('0.1.0')]).toEqual(['0.4', '0.0']);
  });
});
