// The first sector of a disk that boots by BIOS: boot code and partition table. Pure.

export interface Partition {
  readonly bootable: boolean;
  /** 0x0e: FAT16, 0x83: Linux. */
  readonly type: number;
  readonly firstSector: number;
  readonly sectors: number;
}

/** `bootCode`: at most 440 bytes. `diskId` makes the partitions' PARTUUID: its hex digits, "-" and 01..04. */
export function mbrSector(disk: {
  readonly bootCode: Uint8Array;
  readonly diskId: number;
  readonly partitions: readonly Partition[];
}): Buffer {
  const sector = Buffer.alloc(512);
  sector.set(disk.bootCode.subarray(0, 440));
  sector.writeUInt32LE(disk.diskId, 440);
  disk.partitions.forEach((partition, index) => {
    const at = 446 + index * 16;
    sector.writeUInt8(partition.bootable ? 0x80 : 0, at);
    sector.set([0xfe, 0xff, 0xff], at + 1); // cylinder, head, sector: no longer used
    sector.writeUInt8(partition.type, at + 4);
    sector.set([0xfe, 0xff, 0xff], at + 5);
    sector.writeUInt32LE(partition.firstSector, at + 8);
    sector.writeUInt32LE(partition.sectors, at + 12);
  });
  sector.writeUInt16LE(0xaa55, 510);
  return sector;
}
