// One screenshot of a guest by the Remote Framebuffer protocol (RFC 6143), from a VNC server without a password. Reads
// only what it has requested.

import { CommandError, exitCodes } from '../exit-codes.ts';
import type { GuestLine } from './guest-line.ts';

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Red, green and blue of each pixel, row by row. */
  readonly rgb: Uint8Array;
}

/** Maximum width and height; a server that claims more is refused. */
const sideMax = 16_384;
const pointsMax = 64 * 1024 * 1024;
const version = 'RFB 003.008\n';
const encodings = { raw: 0, desktopSize: -223 } as const;

/** Throws `CommandError` when the server violates the protocol. */
export async function lookAt(line: GuestLine): Promise<Picture> {
  const from = byteReader(line);
  const greeting = (await from.take(12)).toString('latin1');
  if (!greeting.startsWith('RFB 003.')) throw wrong(`it begins with ${JSON.stringify(greeting)}`);
  await line.send(Buffer.from(version));
  const kinds = await from.take((await from.take(1)).readUInt8(0));
  if (!kinds.includes(1)) throw wrong('it wants a password');
  await line.send(Buffer.of(1));
  if ((await from.take(4)).readUInt32BE(0) !== 0) throw wrong('it refuses the connection');
  await line.send(Buffer.of(1)); // shared: other clients may be connected
  const init = await from.take(24);
  let size = sized(init.readUInt16BE(0), init.readUInt16BE(2));
  await from.take(init.readUInt32BE(20)); // the name of the screen
  await line.send(pixelFormat);
  await line.send(encodingsWanted);
  let rgb = new Uint8Array(size.width * size.height * 3);
  await line.send(updateRequest(size));
  for (let drawn = 0; drawn < size.width * size.height; ) {
    const kind = (await from.take(1)).readUInt8(0);
    if (kind === 2) continue; // a bell
    if (kind === 3) {
      await from.take((await from.take(7)).readUInt32BE(3)); // text cut in the guest
      continue;
    }
    if (kind !== 0) throw wrong(`it sends messages of kind ${kind}`);
    const rectangles = (await from.take(3)).readUInt16BE(1);
    for (let i = 0; i < rectangles; i++) {
      const head = await from.take(12);
      const [x, y, width, height] = [0, 2, 4, 6].map((at) => head.readUInt16BE(at));
      const area = { x: x ?? 0, y: y ?? 0, width: width ?? 0, height: height ?? 0 };
      const encoding = head.readInt32BE(8);
      if (encoding === encodings.desktopSize) {
        size = sized(area.width, area.height);
        rgb = new Uint8Array(size.width * size.height * 3);
        drawn = 0;
        await line.send(updateRequest(size));
        continue;
      }
      if (encoding !== encodings.raw) throw wrong(`it uses encoding ${encoding}`);
      if (area.x + area.width > size.width || area.y + area.height > size.height)
        throw wrong('it draws beyond its screen');
      for (let row = 0; row < area.height; row++) {
        const points = await from.take(area.width * 4);
        copyRow(points, rgb, ((area.y + row) * size.width + area.x) * 3);
      }
      drawn += area.width * area.height;
    }
  }
  return { ...size, rgb };
}

function copyRow(points: Buffer, rgb: Uint8Array, at: number): void {
  for (let i = 0, to = at; i < points.length; i += 4) {
    rgb[to++] = points[i + 2] ?? 0;
    rgb[to++] = points[i + 1] ?? 0;
    rgb[to++] = points[i] ?? 0;
  }
}

/** SetPixelFormat: 32 bits, little-endian, blue first. */
const pixelFormat = Buffer.from([0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);

const encodingsWanted = ((): Buffer => {
  const message = Buffer.alloc(12);
  message.writeUInt8(2, 0);
  message.writeUInt16BE(2, 2);
  message.writeInt32BE(encodings.raw, 4);
  message.writeInt32BE(encodings.desktopSize, 8);
  return message;
})();

/** The whole screen, changed or not. */
function updateRequest({ width, height }: { readonly width: number; readonly height: number }): Buffer {
  const message = Buffer.alloc(10);
  message.writeUInt8(3, 0);
  message.writeUInt16BE(width, 6);
  message.writeUInt16BE(height, 8);
  return message;
}

function sized(width: number, height: number): { width: number; height: number } {
  if (width < 1 || height < 1 || width > sideMax || height > sideMax || width * height > pointsMax)
    throw wrong(`it says that its screen has ${width} x ${height} points`);
  return { width, height };
}

function byteReader(line: GuestLine): { take(bytes: number): Promise<Buffer> } {
  const messages = line.messages()[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  return {
    async take(bytes) {
      const pieces = [held];
      let have = held.length;
      while (have < bytes) {
        const { value, done } = await messages.next();
        if (done === true || !(value instanceof Uint8Array)) throw wrong('it ended in the middle');
        pieces.push(Buffer.from(value.buffer, value.byteOffset, value.length));
        have += value.length;
      }
      const all = pieces.length === 1 ? held : Buffer.concat(pieces);
      held = all.subarray(bytes);
      return all.subarray(0, bytes);
    },
  };
}

const wrong = (why: string): CommandError =>
  new CommandError(exitCodes.internal, `the screen of the guest broke the RFB protocol: ${why}`);
