// Identifiers: a prefix for the kind, then 26 characters that sort by time of creation.

import type { Prng } from './prng.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'; // Crockford's base 32, as in ULID: no i, l, o, u

/**
 * `<prefix>_` + 48 bits of milliseconds + 80 random bits, in ULID's layout (github.com/ulid/spec). Ids created in the
 * same millisecond are consecutive, like ULID's monotonic ones: the random part of the last one plus one.
 */
export function newId(prefix: string, nowMs: number, prng: Prng): string {
  if (nowMs === lastMs) countOn();
  else {
    lastTime = timeOf((lastMs = nowMs));
    for (let i = 0; i < random.length; i++) random[i] = prng.below(i === 0 ? 31 : 32); // leaves room to count up
  }
  let digits = '';
  for (const digit of random) digits += alphabet[digit];
  return `${prefix}_${lastTime}${digits}`;
}

/** Sixteen digits of base 32, the most significant first. */
const random = Array.from({ length: 16 }, () => 0);
let lastMs = -1;
let lastTime = '';

function countOn(): void {
  for (let i = random.length - 1; i >= 0; i--) {
    const digit = (random[i] ?? 0) + 1;
    random[i] = digit % 32;
    if (digit < 32) return;
  }
}

function timeOf(ms: number): string {
  let time = '';
  for (let rest = ms, i = 0; i < 10; i++) {
    time = alphabet[rest % 32] + time;
    rest = Math.floor(rest / 32);
  }
  return time;
}
