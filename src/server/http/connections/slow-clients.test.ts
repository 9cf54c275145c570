import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../base/manual-clock.ts';
import { SlowClients, type Watched } from './slow-clients.ts';

/** A socket of which the client takes what it is told to take. */
function fakeSocket() {
  let closed = (): void => {};
  const socket = {
    bytesRead: 0,
    bytesWritten: 0,
    writableLength: 0,
    once(_event: 'close', listener: () => void) {
      closed = listener;
    },
    off() {
      closed = () => {};
    },
    send(bytes: number) {
      socket.bytesWritten += bytes;
      socket.writableLength += bytes;
    },
    take(bytes: number) {
      socket.writableLength -= bytes;
    },
    closes: () => closed(),
  };
  return socket satisfies Watched;
}

function watching(idleMsMax?: number) {
  const clock = createManualClock();
  const closed: string[] = [];
  const slow = new SlowClients<ReturnType<typeof fakeSocket>>({
    clock,
    close: (_socket, reason) => closed.push(reason),
  });
  const socket = fakeSocket();
  const forget = slow.watch(socket, idleMsMax === undefined ? {} : { idleMsMax });
  return { pass: clock.advance, clock, closed, socket, forget };
}

describe('slow clients', () => {
  it('are closed when they leave over 64 KiB unread for 30 s', () => {
    const { socket, closed, pass } = watching();
    socket.send(65_537);
    pass(39_999);
    expect(closed).toEqual([]);
    pass(1);
    expect(closed).toEqual(['unread']);
  });

  it('may leave 64 KiB unread', () => {
    const { socket, closed, pass } = watching();
    socket.send(65_536);
    pass(3_600_000);
    expect(closed).toEqual([]);
  });

  it('may always have more to read, as long as they read', () => {
    const { socket, closed, pass } = watching();
    socket.send(200_000);
    for (let i = 0; i < 100; i++) {
      pass(10_000);
      socket.take(30_000);
      socket.send(30_000);
    }
    expect(closed).toEqual([]);
  });

  it('are closed when they read a byte now and then', () => {
    const { socket, closed, pass } = watching();
    socket.send(200_000);
    for (let i = 0; i < 5; i++) {
      pass(10_000);
      socket.take(1);
    }
    expect(closed).toEqual(['unread']);
  });

  it('are closed when nothing passes, where that is asked for', () => {
    const { socket, closed, pass } = watching(60_000);
    pass(50_000);
    socket.bytesRead += 1;
    pass(60_000);
    socket.send(1);
    socket.take(1);
    pass(60_000);
    expect(closed).toEqual([]);
    pass(10_000);
    expect(closed).toEqual(['idle']);
  });

  it('are looked at no more when they are gone', () => {
    for (const leave of ['closes', 'forget'] as const) {
      const { socket, forget, closed, pass, clock } = watching();
      socket.send(1e6);
      if (leave === 'closes') socket.closes();
      else forget();
      pass(10_000);
      expect(clock.nextDueMs()).toBeUndefined();
      expect(closed).toEqual([]);
    }
  });
});
