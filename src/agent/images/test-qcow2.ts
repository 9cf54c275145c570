// Makes qcow2 files by hand, for tests: whole ones, and ones that lie.

export interface Qcow2Fields {
  version?: number;
  backingFileOffset?: bigint;
  backingFileSize?: number;
  clusterBits?: number;
  virtualSize?: bigint;
  encryption?: number;
  l1Entries?: number;
  l1At?: bigint;
  refcountTableAt?: bigint;
  refcountTableClusters?: number;
  snapshots?: number;
  incompatible?: bigint;
  refcountOrder?: number;
  headerLength?: number;
  /** The L2 entry of the disk's first cluster. */
  l2Entry?: bigint;
  l1Entry?: bigint;
}

/** Header, refcount table and block, L1, L2 and one data cluster of 64 KiB each: 393216 bytes. */
export function qcow2File(fields: Qcow2Fields = {}): Buffer {
  const cluster = 65_536;
  const file = Buffer.alloc(6 * cluster, 0);
  file.write('QFI\xfb', 0, 'latin1');
  file.writeUInt32BE(fields.version ?? 3, 4);
  file.writeBigUInt64BE(fields.backingFileOffset ?? 0n, 8);
  file.writeUInt32BE(fields.backingFileSize ?? 0, 16);
  file.writeUInt32BE(fields.clusterBits ?? 16, 20);
  file.writeBigUInt64BE(fields.virtualSize ?? 1024n * 1024n, 24);
  file.writeUInt32BE(fields.encryption ?? 0, 32);
  file.writeUInt32BE(fields.l1Entries ?? 1, 36);
  file.writeBigUInt64BE(fields.l1At ?? BigInt(3 * cluster), 40);
  file.writeBigUInt64BE(fields.refcountTableAt ?? BigInt(cluster), 48);
  file.writeUInt32BE(fields.refcountTableClusters ?? 1, 56);
  file.writeUInt32BE(fields.snapshots ?? 0, 60);
  file.writeBigUInt64BE(fields.incompatible ?? 0n, 72);
  file.writeUInt32BE(fields.refcountOrder ?? 4, 96);
  file.writeUInt32BE(fields.headerLength ?? 104, 100);
  file.writeBigUInt64BE(BigInt(2 * cluster), cluster);
  for (let i = 0; i < 6; i++) file.writeUInt16BE(1, 2 * cluster + i * 2);
  file.writeBigUInt64BE(fields.l1Entry ?? BigInt(4 * cluster) | (1n << 63n), 3 * cluster);
  file.writeBigUInt64BE(fields.l2Entry ?? BigInt(5 * cluster) | (1n << 63n), 4 * cluster);
  file.write('data of the guest', 5 * cluster);
  return file;
}
