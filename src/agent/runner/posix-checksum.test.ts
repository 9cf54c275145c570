import { describe, expect, it } from 'vitest';
import { posixChecksum } from './posix-checksum.ts';

describe('posixChecksum', () => {
  // Printed by `printf TEXT | cksum`.
  it.each([
    ['', 4294967295],
    ['123456789', 930766865],
    ['hello\n', 3015617425],
    ['x'.repeat(300), 3786917833],
  ])('is what cksum prints of %j', (text, checksum) => {
    expect(posixChecksum(Buffer.from(text))).toBe(checksum);
  });
});
