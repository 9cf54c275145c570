// SHA-256 in plain code (FIPS 180-4), for decisions: they must not import `node:`. Slow next to the machine's own; for texts of some
// hundred KiB at most.

const roundConstants = new Uint32Array(64);
const initial = new Uint32Array(8);
fillConstants();

/** Of the UTF-8 of the text, as 64 hex digits. */
export function sha256(text: string): string {
  const bytes = padded(new TextEncoder().encode(text));
  const state = initial.slice();
  const words = new Uint32Array(64);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(at + 4 * i);
    compress(state, words);
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, '0')).join('');
}

/** A one bit, zeros, and the length in bits, up to a multiple of 64 bytes. */
function padded(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  all.set(bytes);
  all[bytes.length] = 0x80;
  const view = new DataView(all.buffer);
  view.setUint32(all.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(all.length - 4, bytes.length << 3);
  return all;
}

function compress(state: Uint32Array, words: Uint32Array): void {
  const at = (array: Uint32Array, i: number): number => array[i] ?? 0;
  for (let i = 16; i < 64; i++) {
    const [w15, w2] = [at(words, i - 15), at(words, i - 2)];
    const s0 = turned(w15, 7) ^ turned(w15, 18) ^ (w15 >>> 3);
    const s1 = turned(w2, 17) ^ turned(w2, 19) ^ (w2 >>> 10);
    words[i] = at(words, i - 16) + s0 + at(words, i - 7) + s1;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i++) {
    const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
    const first = (h + s1 + ((e & f) ^ (~e & g)) + at(roundConstants, i) + at(words, i)) | 0;
    const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
    const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) state[i] = at(state, i) + word;
}

function turned(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

/** From the first 64 primes: 32 bits of the fractions of their cube roots, and of the square roots of the first eight. */
function fillConstants(): void {
  const fraction = (x: number): number => (x - Math.floor(x)) * 2 ** 32;
  for (let prime = 2, count = 0; count < 64; prime++) {
    let isPrime = true;
    for (let i = 2; i * i <= prime; i++) if (prime % i === 0) isPrime = false;
    if (!isPrime) continue;
    roundConstants[count] = fraction(Math.cbrt(prime));
    if (count < 8) initial[count] = fraction(Math.sqrt(prime));
    count += 1;
  }
}
