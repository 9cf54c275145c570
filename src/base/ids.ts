// Identifiers: a prefix that tells the kind, then 26 characters that sort by time of birth.

import type { Prng } from './prng.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'; // Crockford's base 32, as in ULID: no i, l, o, u

/** `<prefix>_` + 48 bits of milliseconds + 80 random bits, in ULID's layout (github.com/ulid/spec). */
export function newId(prefix: string, nowMs: number, prng: Prng): string {
  if (nowMs !== lastMs) lastTime = timeOf((lastMs = nowMs));
  for (let i = 0; i < random.length; i++) random[i] = alphabet.charCodeAt(prng.below(32));
  return `${prefix}_${lastTime}${String.fromCharCode(...random)}`;
}

const random = Array.from({ length: 16 }, () => 0);
let lastMs = -1;
let lastTime = '';

function timeOf(ms: number): string {
  let time = '';
  for (let rest = ms, i = 0; i < 10; i++) {
    time = alphabet[rest % 32] + time;
    rest = Math.floor(rest / 32);
  }
  return time;
}
