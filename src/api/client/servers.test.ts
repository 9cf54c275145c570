import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { Servers, serverUrls } from './servers.ts';

const a = 'http://a:7070';
const b = 'http://b:7070';
const c = 'http://c:7070';

describe('the servers of a fleet', () => {
  it('uses the first until it fails, then another, and stays there', () => {
    const servers = new Servers({ urls: [a, b] });
    servers.failed(a);
    servers.failed(a); // a second request failed in the same moment
    expect(servers.current).toBe(b);
  });

  it('has nowhere else to go alone', () => {
    const servers = new Servers({ urls: [a] });
    servers.failed(a);
    expect([servers.current, servers.untried(new Set([a]))]).toEqual([a, undefined]);
  });

  it('learns those that were announced, and tells of it once', () => {
    const servers = new Servers({ urls: [a] });
    let changes = 0;
    servers.onChange(() => changes++);
    servers.learn(`${c}, ${b}, ${a}`, a);
    servers.learn(`${a}, ${b}, ${c}`, a);
    servers.learn(null, a);
    expect([servers.all, changes]).toEqual([[a, b, c], 1]);
  });

  it.each([
    ['that is none', 'javascript:alert(1), b:7070, http://user@b:7070, http://b/?x', a],
    ['without TLS, told by one with it', b, 'https://a:7070'],
  ])('learns no address %s', (_, announced, from) => {
    const servers = new Servers({ urls: [from] });
    servers.learn(announced, from);
    expect(servers.all).toEqual([from]);
  });

  it('leaves a learned server that is announced no more', () => {
    const servers = new Servers({ urls: [a], known: { learned: [b], current: b } });
    expect(servers.current).toBe(b);
    servers.learn(a, a);
    expect([servers.current, servers.all]).toEqual([a, [a]]);
  });

  it('spreads over the others, seed by seed', () => {
    const clock = createManualClock();
    const next = (seed: number): string => {
      const servers = new Servers({ urls: [a, b, c], spread: { clock, prng: seededPrng(seed) } });
      servers.failed(a);
      return servers.current;
    };
    expect(new Set(Array.from({ length: 32 }, (_, seed) => next(seed)))).toEqual(new Set([b, c]));
  });

  it('reads several addresses from one text', () => {
    expect(serverUrls(`${a}, ${b},,${a}`)).toEqual([a, b]);
  });
});
