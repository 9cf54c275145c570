// The gate every image passes before it is published: an own reading of its header, so that QEMU never sees a file that
// refers to other files, lies about its format or its size, or was cut off. It never trusts a length from the file.

import type { FileHandle } from 'node:fs/promises';

export type GateResult =
  | { readonly ok: true; readonly virtualSizeBytes: number }
  | { readonly ok: false; readonly reason: string };

export interface GateLimits {
  /** The largest disk a guest may be shown. */
  readonly virtualBytesMax: number;
}

/** 16 TiB: more than a host has. */
export const defaultVirtualBytesMax = 16 * 1024 ** 4;

/** Whether the file is a whole image of the declared format that stands for itself. Never guesses another format. */
export async function checkImage(file: FileHandle, format: 'qcow2' | 'raw', limits: GateLimits): Promise<GateResult> {
  const { size } = await file.stat();
  const head = await readAt(file, 0, Math.min(size, 4096));
  if (size === 0) return refused('it is empty');
  const packed = packings.find(({ magic }) => startsWith(head, 0, magic));
  if (packed) return refused(`it is packed with ${packed.name}: say so in the image ("decompress": "${packed.name}")`);
  return format === 'qcow2' ? checkQcow2(file, head, size, limits) : checkRaw(file, head, size, limits);
}

const refused = (reason: string): GateResult => ({ ok: false, reason });

const packings = [
  { name: 'gzip', magic: [0x1f, 0x8b, 0x08] },
  { name: 'zstd', magic: [0x28, 0xb5, 0x2f, 0xfd] },
  { name: 'xz', magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00] },
] as const;

const ascii = (text: string): number[] => [...Buffer.from(text, 'latin1')];

const formats: readonly { readonly name: string; readonly at: number; readonly magic: readonly number[] }[] = [
  { name: 'qcow2', at: 0, magic: [0x51, 0x46, 0x49, 0xfb] },
  { name: 'vmdk', at: 0, magic: ascii('KDMV') },
  { name: 'vmdk', at: 0, magic: ascii('COWD') },
  { name: 'vmdk', at: 0, magic: ascii('# Disk DescriptorFile') },
  { name: 'vpc', at: 0, magic: ascii('conectix') },
  { name: 'vhdx', at: 0, magic: ascii('vhdxfile') },
  { name: 'vdi', at: 64, magic: [0x7f, 0x10, 0xda, 0xbe] },
  { name: 'qed', at: 0, magic: ascii('QED\0') },
  { name: 'luks', at: 0, magic: [...ascii('LUKS'), 0xba, 0xbe] },
  { name: 'parallels', at: 0, magic: ascii('WithoutFreeSpace') },
  { name: 'parallels', at: 0, magic: ascii('WithouFreSpacExt') },
];

async function checkRaw(file: FileHandle, head: Buffer, size: number, limits: GateLimits): Promise<GateResult> {
  const other = formats.find(({ at, magic }) => startsWith(head, at, magic));
  if (other) return refused(`it is declared raw, but its content is ${other.name}`);
  // A fixed-size VHD is a raw disk with a footer; some tools would take it for one, some for the other.
  if (startsWith(await readAt(file, Math.max(0, size - 512), Math.min(512, size)), 0, ascii('conectix')))
    return refused('it is declared raw, but ends with the footer of a vpc (VHD) image');
  if (startsWith(await readAt(file, 0x8001, 5), 0, ascii('CD001')))
    return refused('it is declared raw, but its content is an ISO 9660 CD image');
  if (size % 512 !== 0)
    return refused(`a raw disk is a whole number of 512-byte sectors, but it has ${size} bytes: it was cut off`);
  if (size > limits.virtualBytesMax) return refused(tooLarge(size, limits));
  return { ok: true, virtualSizeBytes: size };
}

// The qcow2 header, all big-endian (qemu, docs/interop/qcow2.txt).
const incompatible = { dirty: 1n, corrupt: 2n, externalData: 4n, compressionType: 8n, extendedL2: 16n };
const incompatibleKnown = 0x1fn;
/** QEMU's own bound on the L1 table. */
const l1BytesMax = 32 * 1024 * 1024;

async function checkQcow2(file: FileHandle, head: Buffer, size: number, limits: GateLimits): Promise<GateResult> {
  if (!startsWith(head, 0, [0x51, 0x46, 0x49, 0xfb])) {
    const other = formats.find(({ at, magic }) => startsWith(head, at, magic));
    return refused(`it is declared qcow2, but ${other ? `its content is ${other.name}` : 'does not begin like one'}`);
  }
  if (head.length < 72) return refused('its header is cut off');
  const version = head.readUInt32BE(4);
  if (version !== 2 && version !== 3) return refused(`qcow2 version ${version} is not known; 2 and 3 are`);
  if (version === 3 && head.length < 104) return refused('its header is cut off');
  if (head.readBigUInt64BE(8) !== 0n || head.readUInt32BE(16) !== 0)
    return refused('it has a backing file; flatten it with "qemu-img convert"');
  const clusterBits = head.readUInt32BE(20);
  if (clusterBits < 9 || clusterBits > 21) return refused(`cluster_bits ${clusterBits} is outside 9..21`);
  const virtualSize = head.readBigUInt64BE(24);
  if (virtualSize > BigInt(limits.virtualBytesMax)) return refused(tooLarge(virtualSize, limits));
  if (virtualSize === 0n || virtualSize % 512n !== 0n)
    return refused(`a virtual size of ${virtualSize} bytes cannot be`);
  if (head.readUInt32BE(32) !== 0) return refused('it is encrypted');
  if (head.readUInt32BE(60) !== 0) return refused('it has internal snapshots; flatten it with "qemu-img convert"');

  let extended = false;
  if (version === 3) {
    const bits = head.readBigUInt64BE(72);
    if (bits & ~incompatibleKnown)
      return refused(`it needs features not known here (0x${(bits & ~incompatibleKnown).toString(16)})`);
    if (bits & incompatible.dirty) return refused('it was not closed cleanly (dirty bit)');
    if (bits & incompatible.corrupt) return refused('it is marked corrupt');
    if (bits & incompatible.externalData) return refused('its data is in another file (external data file)');
    extended = (bits & incompatible.extendedL2) !== 0n;
    if (extended && clusterBits < 14) return refused('extended L2 entries need clusters of 16 KiB or more');
    const refcountOrder = head.readUInt32BE(96);
    if (refcountOrder > 6) return refused(`refcount_order ${refcountOrder} is above 6`);
    const headerLength = head.readUInt32BE(100);
    if (headerLength < 104 || headerLength % 8 !== 0 || headerLength > 1 << clusterBits || headerLength > size)
      return refused(`a header of ${headerLength} bytes cannot be`);
    const compressionType = headerLength > 104 && head.length > 104 ? head.readUInt8(104) : 0;
    if (compressionType > 1 || (compressionType !== 0) !== ((bits & incompatible.compressionType) !== 0n))
      return refused(`compression type ${compressionType} is not known or contradicts the feature bits`);
  }
  const refcountTable = { at: head.readBigUInt64BE(48), bytes: BigInt(head.readUInt32BE(56)) << BigInt(clusterBits) };
  if (refcountTable.bytes === 0n || refcountTable.bytes > 8n * 1024n * 1024n)
    return refused('its refcount table has no possible size');
  if (!whollyIn(refcountTable, size, clusterBits))
    return refused('its refcount table lies outside the file: it was cut off');
  return walkClusters(file, {
    size,
    clusterBits,
    virtualSize: Number(virtualSize), // at most virtualBytesMax, far below 2^53
    l1Entries: head.readUInt32BE(36),
    l1At: head.readBigUInt64BE(40),
    entryBytes: extended ? 16 : 8,
  });
}

interface Layout {
  readonly size: number;
  readonly clusterBits: number;
  readonly virtualSize: number;
  readonly l1Entries: number;
  readonly l1At: bigint;
  readonly entryBytes: 8 | 16;
}

const offsetMask = 0x00ff_ffff_ffff_fe00n;
const compressedFlag = 1n << 62n;

/** Every cluster that the tables name must lie in the file: so a file that was cut off anywhere is refused. */
async function walkClusters(file: FileHandle, layout: Layout): Promise<GateResult> {
  const { size, clusterBits, virtualSize, entryBytes } = layout;
  const extended = entryBytes === 16;
  const clusterBytes = 2 ** clusterBits;
  const entriesInL2 = clusterBytes / entryBytes;
  const l1Needed = Math.ceil(virtualSize / (clusterBytes * entriesInL2));
  if (layout.l1Entries < l1Needed || layout.l1Entries * 8 > l1BytesMax)
    return refused(`its L1 table has ${layout.l1Entries} entries where ${l1Needed} are needed`);
  const l1 = { at: layout.l1At, bytes: BigInt(layout.l1Entries) * 8n };
  if (!whollyIn(l1, size, clusterBits)) return refused('its L1 table lies outside the file: it was cut off');
  const l1Table = await readAt(file, Number(l1.at), layout.l1Entries * 8);
  const seen = new Set<bigint>();
  for (let i = 0; i < layout.l1Entries; i++) {
    const l2At = l1Table.readBigUInt64BE(i * 8) & offsetMask;
    if (l2At === 0n) continue;
    if (i >= l1Needed || seen.has(l2At))
      return refused('its L1 table names a table twice or beyond the end of the disk');
    seen.add(l2At);
    if (!whollyIn({ at: l2At, bytes: BigInt(clusterBytes) }, size, clusterBits))
      return refused('an L2 table lies outside the file: it was cut off');
    const l2Table = await readAt(file, Number(l2At), clusterBytes);
    for (let j = 0; j < entriesInL2; j++) {
      const high = l2Table.readUInt32BE(j * entryBytes);
      if (high === 0 && l2Table.readUInt32BE(j * entryBytes + 4) < 512) continue; // unallocated or zero: most entries
      const guestOffset = (i * entriesInL2 + j) * clusterBytes;
      const end = clusterEnd(l2Table.readBigUInt64BE(j * entryBytes), {
        clusterBits,
        // The disk's last cluster may be written only as far as the disk goes.
        neededBytes: Math.min(
          extended ? writtenSubclusters(l2Table.readUInt32BE(j * entryBytes + 12)) * (clusterBytes / 32) : clusterBytes,
          Math.max(512, virtualSize - guestOffset),
        ),
      });
      if (end > BigInt(size))
        return refused(`the data at ${guestOffset} of the disk lies outside the file: it was cut off`);
    }
  }
  return { ok: true, virtualSizeBytes: virtualSize };
}

/** Of an extended entry's 32 subclusters, how many from the first to the last one written; the file may end after it. */
function writtenSubclusters(allocated: number): number {
  return 32 - Math.clz32(allocated);
}

/** Where the cluster of one L2 entry ends in the file. */
function clusterEnd(entry: bigint, rule: { readonly clusterBits: number; readonly neededBytes: number }): bigint {
  if ((entry & compressedFlag) === 0n) {
    const at = entry & offsetMask;
    return at === 0n ? 0n : at + BigInt(rule.neededBytes);
  }
  // Compressed: the offset's width depends on the cluster size; above it the number of further 512-byte sectors. The
  // last sector may be short: QEMU does not pad the end of the file.
  const offsetBits = BigInt(62 - (rule.clusterBits - 8));
  const at = entry & ((1n << offsetBits) - 1n);
  const sectors = (entry & (compressedFlag - 1n)) >> offsetBits;
  return sectors === 0n ? at + 1n : (at & ~511n) + sectors * 512n + 1n;
}

function whollyIn(part: { readonly at: bigint; readonly bytes: bigint }, size: number, clusterBits: number): boolean {
  return part.at > 0n && part.at % (1n << BigInt(clusterBits)) === 0n && part.at + part.bytes <= BigInt(size);
}

function tooLarge(size: number | bigint, limits: GateLimits): string {
  return `its disk of ${size} bytes is larger than the ${limits.virtualBytesMax} allowed on this host`;
}

function startsWith(bytes: Buffer, at: number, magic: readonly number[]): boolean {
  return bytes.length >= at + magic.length && magic.every((byte, i) => bytes[at + i] === byte);
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
