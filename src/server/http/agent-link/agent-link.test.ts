import { once } from 'node:events';
import { createServer } from 'node:http2';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { AgentLinks } from './agent-link.ts';

describe('the lines of agents', () => {
  let clock: ManualClock;
  let links: AgentLinks;
  const agent = createServer((_request, response) => response.end('a console'));

  beforeEach(async () => {
    clock = createManualClock();
    links = new AgentLinks({ clock, log: silentLogger });
    await new Promise<void>((resolve) => agent.listen(0, '127.0.0.1', resolve));
  });
  afterEach(async () => {
    links.close();
    await new Promise((resolve) => agent.close(resolve));
  });

  const dial = (host: string, epoch = 1): Socket => {
    const socket = connect((agent.address() as AddressInfo).port, '127.0.0.1');
    links.accept(host, socket, epoch);
    return socket;
  };
  const never = new AbortController().signal;
  const ask = async (host: string, signal = never): Promise<string> => {
    const pieces: Uint8Array[] = [];
    for await (const piece of (await links.get(host, '/', signal)).body) pieces.push(piece);
    return Buffer.concat(pieces).toString();
  };

  it('carry a question to the host', async () => {
    dial('h1');
    expect(await ask('h1')).toBe('a console');
  });

  it('are waited for a little, by everybody who asks', async () => {
    const early = ask('h1');
    clock.advance(1500);
    const late = ask('h1');
    dial('h2');
    dial('h1');
    expect(await Promise.all([early, late])).toEqual(['a console', 'a console']);
    expect(clock.nextDueMs()).toBeGreaterThan(29_000); // the next pings
  });

  it('are given up when no agent dials, or when nobody asks any more', async () => {
    const asked = ask('h1');
    const left = new AbortController();
    const leaving = ask('h1', left.signal);
    dial('h2');
    left.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'HostUnreachable' });
    clock.advance(2000);
    await expect(asked).rejects.toMatchObject({
      code: 'HostUnreachable',
      message: expect.stringContaining('berth host show h1'),
    });
  });

  it('are not asked for one who left while they were waited for', async () => {
    const left = new AbortController();
    const leaving = ask('h1', left.signal);
    dial('h1');
    left.abort();
    await expect(leaving).rejects.toMatchObject({ code: 'HostUnreachable' });
  });

  it('are of the newest agent of a host', async () => {
    dial('h1');
    dial('h1');
    expect(await ask('h1')).toBe('a console');
  });

  it('are left side by side in one session: an agent may know this server by several addresses', async () => {
    const [first, second] = [dial('h1'), dial('h1')];
    expect(await ask('h1')).toBe('a console');
    expect([first.destroyed, second.destroyed]).toEqual([false, false]);
    second.destroy();
    await once(second, 'close');
    expect(await ask('h1')).toBe('a console');
  });

  it('end with the session that they are of', async () => {
    const former = dial('h1');
    const ended = once(former, 'close');
    dial('h1', 2);
    await ended;
    expect(await ask('h1')).toBe('a console');
  });

  it('may be replaced in the very moment in which they come up', async () => {
    const { port } = agent.address() as AddressInfo;
    for (const ticks of [0, 1, 2, 3]) {
      const [older, newer] = [connect(port, '127.0.0.1'), connect(port, '127.0.0.1')];
      await Promise.all([once(older, 'connect'), once(newer, 'connect')]);
      links.accept('h1', older, 1);
      for (let tick = 0; tick < ticks; tick++) await new Promise<void>((resolve) => process.nextTick(resolve));
      links.accept('h1', newer, 2);
      expect(await ask('h1')).toBe('a console');
    }
  });
});
