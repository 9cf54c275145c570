// A row's checksum: CRC-32 over key, revision and bytes, so that a turned bit, or a row in a wrong place, is never answered as
// if it were data. It guards against disks, not against people.

import { crc32 } from 'node:zlib';

export function checksumOf(key: string, revision: number, bytes: Uint8Array): number {
  return crc32(bytes, crc32(key, revision >>> 0));
}
