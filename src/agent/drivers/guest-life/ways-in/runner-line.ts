// The two ways to the runner of a guest as one: its virtio-serial port, and the second serial port of a guest that has no driver for the
// first. Which one a guest uses is known when something comes over it.
//
//   unknown ─ data over serial ─► serial ─┐
//      └────── data over the port ────────┴─► port: the serial port is closed, whatever a program writes there

import { Duplex } from 'node:stream';

type Way = 'unknown' | 'serial' | 'port';

/** Ends when the way that the guest uses ends, after all that came over it. */
export function joinRunnerWays(port: Duplex, serial: Duplex): Duplex {
  let way: Way = 'unknown';
  let ended = false;
  const line = new Duplex({
    allowHalfOpen: false,
    read() {
      port.resume();
      serial.resume();
    },
    write(bytes: Uint8Array, _encoding, done) {
      // A way that no guest may ever read is not waited for, and is given no more than it takes at once.
      if (way !== 'serial') send(port, bytes, way === 'port' ? done : undefined);
      if (way !== 'port') send(serial, bytes, way === 'serial' ? done : undefined);
      if (way === 'unknown') done();
    },
    destroy(error, done) {
      port.destroy();
      serial.destroy();
      done(error);
    },
  });
  const pass = (from: Duplex, bytes: Uint8Array): void => {
    if (!line.push(bytes)) from.pause();
  };
  const end = (from: Duplex): void => {
    if (ended || from !== (way === 'serial' ? serial : port)) return;
    ended = true;
    line.push(null);
  };
  port.on('data', (bytes: Uint8Array) => {
    if (ended) return;
    way = 'port';
    serial.destroy();
    pass(port, bytes);
  });
  serial.on('data', (bytes: Uint8Array) => {
    if (ended || way === 'port') return;
    way = 'serial';
    pass(serial, bytes);
  });
  for (const each of [port, serial]) {
    each.on('error', () => {}); // its end is told by 'close'
    each.once('end', () => end(each));
    each.once('close', () => end(each));
  }
  return line;
}

/** `done`: when it takes more, or never will. */
function send(to: Duplex, bytes: Uint8Array, done: (() => void) | undefined): void {
  if (!to.writable || (done === undefined && to.writableNeedDrain)) return done?.();
  if (to.write(bytes) || done === undefined) return done?.();
  const over = (): void => {
    to.off('drain', over);
    to.off('close', over);
    done();
  };
  to.once('drain', over);
  to.once('close', over);
}
