import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import type { Duplex } from 'node:stream';
import { beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../../../base/system.ts';
import { joinRunnerWays } from './runner-line.ts';

describe('the ways to a runner', () => {
  let line: Duplex;
  /** The guest's ends. */
  let guest: Record<'port' | 'serial', Duplex>;
  beforeEach(() => {
    const [portHost, port] = duplexPair();
    const [serialHost, serial] = duplexPair();
    line = joinRunnerWays(portHost, serialHost);
    guest = { port, serial };
  });
  const heardBy = async (end: Duplex): Promise<string> => String((await once(end, 'data'))[0]);

  it.each(['port', 'serial'] as const)('carry both directions over the %s, if the guest uses it', async (way) => {
    const hello = [heardBy(guest.port), heardBy(guest.serial)];
    line.write('hello');
    expect(await Promise.all(hello)).toEqual(['hello', 'hello']);
    const welcome = heardBy(line);
    guest[way].write('welcome');
    expect(await welcome).toBe('welcome');
    const go = heardBy(guest[way]);
    line.write('go');
    expect(await go).toBe('go');
  });

  it('leave the serial port for good when the other one speaks', async () => {
    const noise = heardBy(line);
    guest.serial.write('login: ');
    expect(await noise).toBe('login: ');
    const closed = once(guest.serial, 'end');
    guest.serial.resume();
    const welcome = heardBy(line);
    guest.port.write('welcome');
    expect(await welcome).toBe('welcome');
    await closed;
  });

  it('wait for the guest where it is known how it listens, and never for the other way', async () => {
    const chunk = Buffer.alloc(1024 * 1024);
    const welcome = heardBy(line);
    guest.serial.write('welcome');
    await welcome;
    expect(line.write(chunk)).toBe(false);
    let taken = false;
    const drained = once(line, 'drain').then(() => (taken = true));
    line.write(chunk);
    expect(taken).toBe(false);
    guest.serial.resume();
    await drained; // though the port is not read
  });

  it.each(['port', 'serial'] as const)(
    'lose nothing of what the guest wrote over the %s before its end',
    async (way) => {
      guest[way].write('first');
      guest[way].write(Buffer.alloc(100_000, 'x'));
      for (const each of [guest.port, guest.serial]) each.resume().end();
      const pieces: Buffer[] = [];
      for await (const piece of line) {
        pieces.push(piece);
        await new Promise<void>((resolve) => system.afterTurn(resolve)); // a slow reader
      }
      expect(Buffer.concat(pieces)).toHaveLength(100_005);
    },
  );

  it('end with the guest, and close both', async () => {
    line.resume();
    const closed = [once(line, 'close'), once(guest.port, 'close'), once(guest.serial, 'close')];
    guest.port.resume().end();
    guest.serial.resume().end();
    await Promise.all(closed);
  });
});
