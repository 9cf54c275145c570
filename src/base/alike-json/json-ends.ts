// Where a value of JSON ends, from its bytes alone. It reads no value, and believes that what it passes is JSON.

export const [quote, backslash, comma, zero, nine] = [0x22, 0x5c, 0x2c, 0x30, 0x39] as const;
export const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d] as const;

/** Behind the closing quote of the text that begins there; -1: none does, or it does not end. */
export function endOfText(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== quote) return -1;
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) return at + 1;
    if (byte === backslash) at += 1;
  }
  return -1;
}

/** Behind the bracket that closes the object or array that begins there; -1: none does, or it does not end. */
export function endOfPart(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== openBrace && bytes[from] !== openBracket) return -1;
  let depth = 0;
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) {
      at = endOfText(bytes, at) - 1;
      if (at < 0) return -1;
    } else if (byte === openBrace || byte === openBracket) depth += 1;
    else if (byte === closeBrace || byte === closeBracket) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** Behind what numbers are written with; `from`: nothing of that stands there. */
export function endOfNumber(bytes: Uint8Array, from: number): number {
  let end = from;
  while (isInNumber(bytes[end])) end += 1;
  return end;
}

export function isInNumber(byte: number | undefined): boolean {
  return byte !== undefined && ((byte >= zero && byte <= nine) || notDigits.has(byte));
}

const notDigits: ReadonlySet<number> = new Set(new TextEncoder().encode('+-.eE'));
