// What the head of a qcow2 file says, where more than one asks for it. Pure; all numbers are big-endian (QEMU, docs/interop/qcow2.txt).

/** As much of a file as the functions below need. */
export const qcow2HeadBytes = 80;

/** Features that a reader must know; none in a version before 3, or in a head that is cut off. */
export function incompatibleFeatures(head: Buffer): bigint {
  return head.length >= qcow2HeadBytes && head.readUInt32BE(4) >= 3 ? head.readBigUInt64BE(72) : 0n;
}

/** The size of the disk as its guest sees it. */
export function virtualSizeBytes(head: Buffer): number {
  return head.length >= qcow2HeadBytes ? Number(head.readBigUInt64BE(24)) : 0;
}

/** Whether the guest's data is in a file that the head names. */
export function hasExternalData(head: Buffer): boolean {
  return (incompatibleFeatures(head) & 4n) !== 0n;
}
