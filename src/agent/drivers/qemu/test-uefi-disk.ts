// A disk that only UEFI boots: a FAT file system with a program of a few bytes that says that it is ready, and sleeps. It is not signed. Used
// by tests only.

import { execFileSync } from 'node:child_process';
import { rmSync, truncateSync, writeFileSync } from 'node:fs';

export const uefiDiskMiB = 4;

/** Makes a raw disk at `path`, with mkfs.vfat and mtools. */
export function makeUefiDisk(path: string, text = 'berth: address eth0 10.0.2.15\nberth: ready\n'): void {
  const program = `${path}.efi`;
  writeFileSync(program, uefiProgram(text));
  writeFileSync(path, '');
  truncateSync(path, uefiDiskMiB * 1024 * 1024);
  execFileSync('mkfs.vfat', [path], { stdio: 'ignore' });
  execFileSync('mmd', ['-i', path, '::EFI', '::EFI/BOOT']);
  execFileSync('mcopy', ['-i', path, program, '::EFI/BOOT/BOOTX64.EFI']);
  rmSync(program);
}

/** A PE32+ with one section: code, and the text that it writes to the first serial port. */
function uefiProgram(text: string): Buffer {
  const code = Buffer.from([
    ...[0x48, 0x8d, 0x35, 0x1a, 0x00, 0x00, 0x00], // lea rsi, [rip + 26]: behind the code
    0xac, // lodsb
    ...[0x84, 0xc0, 0x74, 0x12], // test al, al; jz to hlt
    ...[0x88, 0xc3], // mov bl, al
    ...[0x66, 0xba, 0xfd, 0x03, 0xec], // mov dx, 0x3fd; in al, dx
    ...[0xa8, 0x20, 0x74, 0xfb], // test al, 0x20; jz to in
    ...[0x88, 0xd8, 0xb2, 0xf8, 0xee], // mov al, bl; mov dl, 0xf8; out dx, al
    ...[0xeb, 0xe9], // jmp to lodsb
    ...[0xf4, 0xeb, 0xfd], // hlt; jmp to hlt
  ]);
  const all = Buffer.concat([code, Buffer.from(`${text}\0`)]);
  const file = Buffer.alloc(0x400);
  file.write('MZ', 0);
  file.writeUInt32LE(0x80, 0x3c);
  file.write('PE\0\0', 0x80);
  file.writeUInt16LE(0x8664, 0x84); // x86-64
  file.writeUInt16LE(1, 0x86); // sections
  file.writeUInt16LE(0xf0, 0x94); // size of the optional header
  file.writeUInt16LE(0x22, 0x96); // executable, large addresses
  file.writeUInt16LE(0x20b, 0x98); // PE32+
  file.writeUInt32LE(0x200, 0x9c); // size of the code
  file.writeUInt32LE(0x1000, 0xa8); // entry
  file.writeUInt32LE(0x1000, 0xac); // base of the code
  file.writeUInt32LE(0x1000, 0xb8); // section alignment
  file.writeUInt32LE(0x200, 0xbc); // file alignment
  file.writeUInt32LE(0x2000, 0xd0); // size of the image
  file.writeUInt32LE(0x200, 0xd4); // size of the headers
  file.writeUInt16LE(10, 0xdc); // an EFI application
  file.writeUInt32LE(16, 0x104); // data directories, all empty
  file.write('.text', 0x188);
  file.writeUInt32LE(all.length, 0x190);
  file.writeUInt32LE(0x1000, 0x194);
  file.writeUInt32LE(0x200, 0x198);
  file.writeUInt32LE(0x200, 0x19c);
  file.writeUInt32LE(0x60000020, 0x1ac); // code, readable, executable
  all.copy(file, 0x200);
  return file;
}
