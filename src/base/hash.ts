// A fast fingerprint of text, to tell apart texts that are not crafted to collide. Not for secrets or signatures.

/** 64 bits as 16 hex digits: two lanes of FNV-1a with different offsets (isthe.com/chongo/tech/comp/fnv). */
export function fingerprint(text: string): string {
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ (unit + i), 0x01000193);
  }
  return (a >>> 0).toString(16).padStart(8, '0') + (b >>> 0).toString(16).padStart(8, '0');
}
