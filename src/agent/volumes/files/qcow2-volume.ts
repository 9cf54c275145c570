// Reads what a volume's qcow2 file says of itself: size and snapshots. An own reading, so that it costs no process, can be done while a
// guest writes, and never follows the file to another one: the header is within reach of the guest's hypervisor.

import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type VolumeLook, snapshotName } from './volume-files.ts';
import { hasExternalData, incompatibleFeatures } from '../../images/qcow2-header.ts';

/** Throws what `open` throws. */
export async function lookAtQcow2(path: string): Promise<VolumeLook> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await read(file);
  } finally {
    await file.close();
  }
}

const damage = (why: string): VolumeLook => ({ found: 'damage', why });

// All big-endian (qemu, docs/interop/qcow2.txt).
const headerBytesMin = 104;
const corruptBit = 2n;
/** QEMU writes at most 65,536; we make a handful, and one of somebody else's making may hold some more. */
const snapshotsMax = 256;
const tableBytesMax = 256 * 1024;
const entryBytes = 40;

async function read(file: FileHandle): Promise<VolumeLook> {
  const seen = await file.stat();
  if (!seen.isFile()) return damage('it is no file');
  const head = await readAt(file, 0, headerBytesMin);
  if (head.length < headerBytesMin || head.toString('latin1', 0, 4) !== 'QFI\xfb') return damage('it is no qcow2 file');
  if (head.readUInt32BE(4) !== 3) return damage(`it is of qcow2 version ${head.readUInt32BE(4)}, and volumes are of 3`);
  if (head.readBigUInt64BE(8) !== 0n || head.readUInt32BE(16) !== 0)
    return damage('it names a backing file, and volumes have none');
  if (head.readUInt32BE(32) !== 0) return damage('it is encrypted');
  if (hasExternalData(head)) return damage('its data is in another file');
  if ((incompatibleFeatures(head) & corruptBit) !== 0n)
    return damage('QEMU has marked it corrupt; look at it with "qemu-img check"');
  const sizeBytes = head.readBigUInt64BE(24);
  if (sizeBytes > BigInt(Number.MAX_SAFE_INTEGER)) return damage(`a size of ${sizeBytes} bytes cannot be`);
  const snapshots = await readSnapshots(file, {
    count: head.readUInt32BE(60),
    offset: head.readBigUInt64BE(64),
  });
  if (snapshots === undefined) return damage('its list of snapshots cannot be read');
  return { found: 'volume', sizeBytes: Number(sizeBytes), usedBytes: seen.blocks * 512, snapshots };
}

async function readSnapshots(
  file: FileHandle,
  { count, offset }: { readonly count: number; readonly offset: bigint },
): Promise<{ name: string; createdAtMs: number }[] | undefined> {
  if (count === 0) return [];
  if (offset === 0n || count > snapshotsMax || offset > BigInt(Number.MAX_SAFE_INTEGER)) return undefined;
  const table = await readAt(file, Number(offset), tableBytesMax);
  const found = new Map<string, number>();
  let at = 0;
  for (let entry = 0; entry < count; entry++) {
    if (at + entryBytes > table.length) return undefined;
    const idBytes = table.readUInt16BE(at + 12);
    const nameBytes = table.readUInt16BE(at + 14);
    const seconds = table.readUInt32BE(at + 16);
    const nanoseconds = table.readUInt32BE(at + 20);
    const nameAt = at + entryBytes + table.readUInt32BE(at + 36) + idBytes;
    if (nameAt + nameBytes > table.length) return undefined;
    const name = snapshotName(table.toString('utf8', nameAt, nameAt + nameBytes));
    if (name !== undefined && !found.has(name)) found.set(name, seconds * 1000 + Math.floor(nanoseconds / 1_000_000));
    at = Math.ceil((nameAt + nameBytes) / 8) * 8;
  }
  return [...found].map(([name, createdAtMs]) => ({ name, createdAtMs })).sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Shorter at the end of the file. */
async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  const { bytesRead } = await file.read(buffer, 0, length, position);
  return buffer.subarray(0, bytesRead);
}
