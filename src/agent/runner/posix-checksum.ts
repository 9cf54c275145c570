// The checksum of cksum(1), as POSIX defines it: every system has a tool that prints it. Pure.

const table = new Uint32Array(256).map((_, index) => {
  let value = index << 24;
  for (let bit = 0; bit < 8; bit++) value = value < 0 ? (value << 1) ^ 0x04c11db7 : value << 1;
  return value;
});

export function posixChecksum(bytes: Uint8Array): number {
  let value = 0;
  const take = (byte: number): void => {
    value = (value << 8) ^ (table[((value >>> 24) ^ byte) & 0xff] ?? 0);
  };
  for (const byte of bytes) take(byte);
  for (let { length } = bytes; length > 0; length = Math.floor(length / 256)) take(length & 0xff);
  return ~value >>> 0;
}
