import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { system } from '../../base/system.ts';
import { createClient } from '../../api/client/client.ts';
import type { FetchLike } from '../../api/client/client.ts';
import type { Route } from '../../server/http/route.ts';
import { Cache } from '../../core/state/cache.ts';
import { createChances } from './chances.ts';
import { Network } from './network.ts';
import type { Peer } from './peer.ts';
import { createProcessClock } from './process-clock.ts';
import { createTally } from '../batch/tally.ts';
import { Timeline } from './timeline.ts';
import { drawWeather, type Weather } from './weather.ts';

const get = { method: 'GET', headers: {} };

/** One server with a counter and an endless stream, and one client on host h1. */
function begin(weather: Partial<Weather['network']> = {}) {
  const timeline = new Timeline(seededPrng(1));
  const tally = createTally();
  const { calm } = drawWeather(seededPrng(1));
  const network = new Network({
    timeline,
    tally,
    chances: createChances({ tally, prng: seededPrng(3) }),
    prng: seededPrng(2),
    weather: () => ({ ...calm.network, delayMsMin: 1, delayMsMean: 3, ...weather }),
    sticky: true,
    onRequest() {},
    onInternal: (error) => expect.unreachable(String(error)),
  });
  const clock = createProcessClock(timeline);
  let handled = 0;
  const left: number[] = [];
  const routes: Route[] = [
    { method: 'POST', path: '/count', access: 'open', handle: () => ({ status: 200, json: { count: ++handled } }) },
    {
      method: 'GET',
      path: '/numbers',
      access: 'self',
      handle: ({ signal }) => {
        signal.addEventListener('abort', () => left.push(timeline.nowMs));
        return {
          status: 200,
          lines: (async function* () {
            for (let i = 0; !signal.aborted; i++) {
              yield i;
              await new Promise<void>((resolve) => void clock.setTimer(1000, resolve));
            }
          })(),
        };
      },
    },
  ];
  const endpoint = network.endpoint('server');
  network.listen(endpoint, clock, { routes, snapshot: new Cache(() => 0) });
  const peer: Peer = {
    name: 'h1',
    host: 'h1',
    clock: createProcessClock(timeline),
    principal: { kind: 'admin' },
    answerTimeoutMs: 5000,
  };
  const fetch: FetchLike = network.fetchFor(peer);
  const pass = async (ms: number): Promise<void> => {
    const untilMs = timeline.nowMs + ms;
    await system.turn();
    while (timeline.step(untilMs)) await system.turn();
  };
  /** What became of a call so far. */
  const watch = <T>(call: Promise<T>): { outcome: unknown } => {
    const seen: { outcome: unknown } = { outcome: 'open' };
    call.then(
      (value) => (seen.outcome = value),
      (error: Error) => (seen.outcome = error.message),
    );
    return seen;
  };
  const post = () => watch(fetch('http://berth/count', { ...get, method: 'POST' }).then((response) => response.text()));
  const numbers = async (into: unknown[]): Promise<void> => {
    try {
      const response = await fetch('http://berth/numbers', get);
      for await (const piece of response.body ?? []) into.push(Number(new TextDecoder().decode(piece)));
      into.push('end');
    } catch (error) {
      into.push(error instanceof Error ? error.message : error);
    }
  };
  return { network, endpoint, peer, clock, routes, pass, post, numbers, left, handled: () => handled, tally, fetch };
}

describe('the false network', () => {
  it('carries a request to its route and the answer back, late', async () => {
    const { post, pass } = begin();
    const call = post();
    expect(call.outcome).toBe('open');
    await pass(100);
    expect(call.outcome).toBe('{"count":1}');
  });

  it('answers as the API does when there is no such route or right', async () => {
    const { fetch, pass, network, peer } = begin();
    const stranger = createClient({
      url: 'http://berth',
      fetch: network.fetchFor({ ...peer, principal: { kind: 'host', host: 'h2' } }),
    });
    const calls = [stranger.json('/numbers'), createClient({ url: 'http://berth', fetch }).json('/none')];
    const outcomes = Promise.allSettled(calls);
    await pass(100);
    expect((await outcomes).map((each) => each.status === 'rejected' && each.reason.code)).toEqual([
      'Forbidden',
      'NotFound',
    ]);
  });

  it('loses requests: nothing happens, and the client waits in vain', async () => {
    const { post, pass, handled } = begin({ requestLost: 1000 });
    const call = post();
    await pass(10_000);
    expect([call.outcome, handled()]).toEqual(['no answer within 5000 ms', 0]);
  });

  it('loses answers: it happened, and the client waits in vain', async () => {
    const { post, pass, handled } = begin({ answerLost: 1000 });
    const call = post();
    await pass(10_000);
    expect([call.outcome, handled()]).toEqual(['no answer within 5000 ms', 1]);
  });

  it('repeats requests, and gives the client one answer', async () => {
    const { post, pass, handled } = begin({ duplicate: 1000 });
    post();
    await pass(30_000);
    expect(handled()).toBe(2);
  });

  it.each(['both', 'to-server', 'from-server'] as const)('parts a host from the rest: %s', async (partition) => {
    const { network, post, pass, handled } = begin();
    network.part('h1', partition);
    const call = post();
    await pass(10_000);
    expect(call.outcome).toBe('no answer within 5000 ms');
    expect(handled()).toBe(partition === 'from-server' ? 1 : 0);
    network.heal('h1');
    const next = post();
    await pass(100);
    expect(next.outcome).toMatch(/count/);
  });

  it('carries the pieces of a stream in order', async () => {
    const { numbers, pass } = begin({ slow: 300 });
    const seen: unknown[] = [];
    void numbers(seen);
    await pass(20_000);
    expect(seen.length).toBeGreaterThan(10);
    expect(seen).toEqual(seen.map((_, index) => index));
  });

  it('cuts streams: both ends learn of it', async () => {
    const { numbers, pass, left } = begin({ streamCut: 1000 });
    const seen: unknown[] = [];
    void numbers(seen);
    await pass(40_000);
    expect(seen.at(-1)).toBe('the stream was cut');
    expect(left).toHaveLength(1);
  });

  it('stalls streams: nothing more comes, and nobody is told', async () => {
    const { numbers, pass } = begin({ streamStalled: 1000 });
    const seen: unknown[] = [];
    void numbers(seen);
    await pass(31_000);
    const then = seen.length;
    await pass(60_000);
    expect(seen).toHaveLength(then);
    expect(seen.at(-1)).toBe(then - 1);
  });

  it('breaks what is open to a server that dies, and refuses what comes after', async () => {
    const { network, endpoint, clock, numbers, post, pass } = begin();
    const seen: unknown[] = [];
    void numbers(seen);
    await pass(2500);
    clock.kill();
    network.hangUp(endpoint);
    const call = post();
    await pass(100);
    expect(seen.at(-1)).toBe('connection reset');
    expect(call.outcome).toBe('connection refused');
  });

  it('tells a server at once of a client whose process died, and late of one whose host died', async () => {
    for (const [how, afterMs] of [
      ['process', 100],
      ['host', 40_000],
    ] as const) {
      const { network, peer, numbers, pass, left } = begin();
      void numbers([]);
      await pass(1500);
      peer.clock.kill();
      network.leave(peer, how);
      await pass(afterMs);
      expect(left).toHaveLength(how === 'process' ? 1 : 0);
      await pass(60_000);
      expect(left).toHaveLength(1);
    }
  });

  it('gives up a call when its caller does', async () => {
    const { fetch, pass } = begin();
    const caller = new AbortController();
    const call = fetch('http://berth/count', { ...get, method: 'POST', signal: caller.signal });
    const outcome = call.catch((error: Error) => error.message);
    caller.abort();
    await pass(10);
    expect(await outcome).toBe('the call was given up');
  });
});
