// Trace hash: a fingerprint of everything that happened in a run, in its order, cheap enough to be taken always. Two runs of one seed
// that agree in it did the same at the same moments.

export interface TraceHash {
  add(value: number): void;
  addText(text: string): void;
  text(): string;
}

/** FNV-1a over 32-bit words, twice with different seeds: 64 bits. */
export function createTraceHash(): TraceHash {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  const word = (value: number): void => {
    a = Math.imul(a ^ value, 0x01000193);
    b = Math.imul(b ^ value, 0x85ebca6b) ^ (b >>> 13);
  };
  return {
    add(value) {
      word(value | 0);
      word(Math.floor(value / 0x1_0000_0000));
    },
    addText(text) {
      for (let i = 0; i < text.length; i++) word(text.charCodeAt(i));
    },
    text: () => (a >>> 0).toString(16).padStart(8, '0') + (b >>> 0).toString(16).padStart(8, '0'),
  };
}
