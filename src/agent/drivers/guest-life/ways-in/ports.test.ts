import { createSocket } from 'node:dgram';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createPortBook } from './ports.ts';

const book = (first: number, last: number) => createPortBook({ bindAddress: '127.0.0.1', range: { first, last } });
const any = { guestPort: 22, hostPort: 0, protocol: 'tcp' } as const;
/** Two ports next to each other that are free, most likely: from where the kernel gives out none. */
const range = { first: 31_840, last: 31_841 };

describe('published ports', () => {
  it('are given to one guest each, however many ask at once', async () => {
    const ports = book(range.first, range.last);
    const results = await Promise.allSettled(['a', 'b', 'c'].map((guest) => ports.reserve(guest, [any])));
    const given = results.flatMap((result) =>
      result.status === 'fulfilled' ? result.value.map((port) => port.hostPort) : [],
    );
    expect(given.sort()).toEqual([range.first, range.last]);
    expect(results.filter((result) => result.status === 'rejected').map((result) => result.reason.code)).toEqual([
      'PortInUse',
    ]);
  });

  it('are tried in an order that depends on the guest only', async () => {
    const [one, two] = [book(20_000, 29_999), book(20_000, 29_999)];
    expect(await one.reserve('inst_x', [any])).toEqual(await two.reserve('inst_x', [any]));
  });

  it('are all given back when one of them cannot be had', async () => {
    const ports = book(range.first, range.last);
    const fixed = { ...any, hostPort: range.first };
    await ports.reserve('a', [{ ...any, hostPort: range.last }]);
    await expect(ports.reserve('b', [fixed, { ...any, hostPort: range.last }])).rejects.toThrow(/in use by guest a/);
    expect(await ports.reserve('c', [fixed])).toEqual([fixed]);
  });

  it('held by another program are refused, with the port in the message', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await expect(book(1, 2).reserve('a', [{ ...any, hostPort: port }])).rejects.toThrow(
      `127.0.0.1:${port}/tcp is in use by another program`,
    );
    await new Promise((resolve) => server.close(resolve));
  });

  it('of UDP are another thing than those of TCP', async () => {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
    const hostPort = socket.address().port;
    await expect(book(1, 2).reserve('a', [{ guestPort: 53, hostPort, protocol: 'udp' }])).rejects.toMatchObject({
      code: 'PortInUse',
    });
    await new Promise<void>((resolve) => socket.close(resolve));
  });
});
