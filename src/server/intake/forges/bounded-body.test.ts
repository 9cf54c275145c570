import { describe, expect, it } from 'vitest';
import { mebibyte } from '../../../base/bytes.ts';
import { BoundedBodies, bodyBytesMax } from './bounded-body.ts';

async function* bytesOf(length: number): AsyncGenerator<Uint8Array> {
  for (let left = length; left > 0; left -= mebibyte) yield new Uint8Array(Math.min(left, mebibyte));
}

describe('bodies of unknown senders', () => {
  /** A body that is held until `release`. */
  function held(bodies: BoundedBodies, length: number) {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    let arrive = (): void => {};
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const use = async (bytes: Buffer): Promise<number> => {
      arrive();
      await released;
      return bytes.byteLength;
    };
    return { arrived, release, size: bodies.read(bytesOf(length), { length: undefined, use }) };
  }

  it('are refused beyond the memory for large ones, and small ones are taken meanwhile', async () => {
    const bodies = new BoundedBodies();
    const large = [held(bodies, bodyBytesMax), held(bodies, bodyBytesMax)];
    for (const { arrived } of large) await arrived;
    await expect(held(bodies, mebibyte).size).rejects.toMatchObject({ code: 'TooManyRequests' });
    const small = held(bodies, 1000);
    small.release();
    expect(await small.size).toBe(1000);
    for (const { release } of large) release();
    expect(await Promise.all(large.map(({ size }) => size))).toEqual([bodyBytesMax, bodyBytesMax]);
    const next = held(bodies, bodyBytesMax);
    next.release();
    expect(await next.size).toBe(bodyBytesMax);
  });

  it('leave their memory when they are refused', async () => {
    const bodies = new BoundedBodies();
    for (let i = 0; i < 4; i++)
      await expect(held(bodies, bodyBytesMax + 1).size).rejects.toMatchObject({ code: 'PayloadTooLarge' });
    const next = held(bodies, bodyBytesMax);
    next.release();
    expect(await next.size).toBe(bodyBytesMax);
  });

  it('whose connection breaks are the fault of the client', async () => {
    const broken = (async function* () {
      yield new Uint8Array(1);
      throw new Error('ECONNRESET');
    })();
    const read = new BoundedBodies().read(broken, { length: undefined, use: async () => 0 });
    await expect(read).rejects.toMatchObject({ code: 'InvalidRequest', field: 'body' });
  });
});
