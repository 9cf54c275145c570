// Identifiers: a prefix that tells the kind, then 26 characters that sort by time of birth.

import type { Prng } from './prng.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'; // Crockford's base 32, as in ULID: no i, l, o, u

/** `<prefix>_` + 48 bits of milliseconds + 80 random bits, in ULID's layout (github.com/ulid/spec). */
export function newId(prefix: string, nowMs: number, prng: Prng): string {
  let time = '';
  for (let rest = nowMs, i = 0; i < 10; i++) {
    time = alphabet[rest % 32] + time;
    rest = Math.floor(rest / 32);
  }
  let random = '';
  for (let i = 0; i < 16; i++) random += alphabet[prng.below(32)];
  return `${prefix}_${time}${random}`;
}
