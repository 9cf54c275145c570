// A row's checksum: CRC-32 over key, revision and bytes, so that a flipped bit, or a row in a wrong place, is never
// returned as data. It protects against disks, not against attackers.

import { crc32 } from 'node:zlib';

export function checksumOf(key: string, revision: number, bytes: Uint8Array): number {
  return crc32(bytes, crc32(key, revision >>> 0));
}
