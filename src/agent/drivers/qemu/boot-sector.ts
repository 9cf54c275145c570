// Boot sectors made in code, for proving that an accelerator really runs a guest and for tests: 512 bytes of 16-bit
// x86 that a PC BIOS loads at 0x7c00. They need no kernel, no toolchain and no download.

export type Step =
  /** Writes text to the first serial port. */
  | { readonly do: 'print'; readonly text: string }
  /** Prints a digit kept in the disk's second sector and counts it up there: how often this very disk was booted. */
  | { readonly do: 'count-boots' }
  /** Writes one sector into each of this many clusters of 64 KiB, from the second cluster on: the disk's file grows with each. */
  | { readonly do: 'write-clusters'; readonly count: number }
  /** Ends QEMU through its `isa-debug-exit` device at port 0xf4; QEMU's exit code is `2 * value + 1`. */
  | { readonly do: 'debug-exit'; readonly value: number }
  /** Powers off through the ACPI registers of QEMU's `pc` machine. */
  | { readonly do: 'power-off' }
  /** Says through the `pvpanic` device that the guest's kernel panicked. */
  | { readonly do: 'panic' }
  /** Sleeps until the power button is pressed, then goes on. */
  | { readonly do: 'await-power-button' }
  /** Says back what comes in at a serial port, by default the first, byte for byte, and sleeps in between. Never goes on. */
  | { readonly do: 'echo'; readonly port?: 1 | 2 }
  /** Does everything again from the first step, for ever. */
  | { readonly do: 'repeat' }
  /** Sleeps and never goes on. */
  | { readonly do: 'halt' };

/** A bootable sector that does `steps` in order. Throws when they do not fit. */
export function bootSector(steps: readonly Step[]): Uint8Array {
  const code: number[] = [...setUp];
  for (const step of steps) code.push(...assemble(step, code.length));
  code.push(...sleepForEver);
  if (code.length > 510) throw new RangeError(`a boot sector holds 510 bytes of code, not ${code.length}`);
  const sector = new Uint8Array(512);
  sector.set(code);
  sector.set([0x55, 0xaa], 510);
  return sector;
}

/** A raw disk of 1 MiB that starts with `bootSector(steps)`. */
export function bootDisk(steps: readonly Step[]): Uint8Array {
  const disk = new Uint8Array(1024 * 1024);
  disk.set(bootSector(steps));
  return disk;
}

/** `base`: high byte of the serial port's registers, 0x3f8 or 0x2f8. */
const printAlAt = (base: number): number[] => [
  0x50, // push ax
  ...[0xba, 0xfd, base], // mov dx, 0x3fd: the line status register
  0xec, // in al, dx
  ...[0xa8, 0x20], // test al, 0x20: room for a byte?
  ...[0x74, 0xfb], // jz back to in
  0x58, // pop ax
  ...[0xba, 0xf8, base], // mov dx, 0x3f8
  0xee, // out dx, al
];
const printAl = printAlAt(0x03);

const sleepForEver = [0xfb, 0xf4, 0xeb, 0xfc]; // sti; hlt; jmp back to sti

function echo(port: 1 | 2): number[] {
  const [base, otherLines] = port === 1 ? [0x03, 0xef] : [0x02, 0xf7]; // line 4 or 3 of the interrupt controller
  const echoOne = [
    ...[0xba, 0xf8, base, 0xec], // mov dx, 0x3f8; in al, dx
    ...printAlAt(base),
  ];
  return [
    ...[0xba, 0xf9, base, 0xb0, 0x01, 0xee], // mov dx, 0x3f9; mov al, 1; out dx, al: an interrupt for each byte that comes
    ...[0xba, 0xfc, base, 0xb0, 0x0b, 0xee], // mov dx, 0x3fc; mov al, 0x0b; out dx, al: and let it through
    ...[0xe4, 0x21, 0x24, otherLines, 0xe6, 0x21], // in al, 0x21; and al, 0xef; out 0x21, al: the BIOS acknowledges it
    ...[0xfa, 0xba, 0xfd, base, 0xec], // cli; mov dx, 0x3fd; in al, dx
    ...[0xa8, 0x01, 0x75, 0x04], // test al, 1; jnz behind the sleep: a byte has come
    ...[0xfb, 0xf4, 0xeb, 0xf3], // sti; hlt: nothing can come between the two; jmp back to cli
    ...echoOne,
    ...[0xeb, 0x100 - (echoOne.length + 15)], // jmp back to cli
  ];
}

const setUp = [
  0xfa, // cli
  ...[0x31, 0xc0], // xor ax, ax
  ...[0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xd0], // mov ds, ax; mov es, ax; mov ss, ax
  ...[0xbc, 0x00, 0x7c], // mov sp, 0x7c00
  ...[0x88, 0x16, 0x00, 0x05], // mov [0x500], dl: the disk we came from
  0xfb, // sti
  0xfc, // cld
];

function assemble(step: Step, position: number): number[] {
  switch (step.do) {
    case 'repeat': {
      const back = 0x10000 + setUp.length - (position + 3);
      return [0xe9, back & 0xff, back >> 8]; // jmp to the first step
    }
    case 'print':
      return print(step.text);
    case 'count-boots':
      return countBoots;
    case 'write-clusters':
      return writeClusters(step.count);
    case 'debug-exit':
      return [...[0xb0, step.value & 0xff], ...[0xe6, 0xf4]]; // mov al, value; out 0xf4, al
    case 'power-off':
      return [...[0xba, 0x04, 0x06], ...[0xb8, 0x00, 0x20], 0xef]; // mov dx, 0x604; mov ax, 0x2000; out dx, ax
    case 'panic':
      return [...[0xba, 0x05, 0x05], ...[0xb0, 0x01], 0xee]; // mov dx, 0x505; mov al, 1; out dx, al
    case 'await-power-button':
      return [
        ...[0xba, 0x02, 0x06, 0xb8, 0x00, 0x01, 0xef], // mov dx, 0x602; mov ax, 0x100; out dx, ax: enable the button
        0xf4, // hlt: until the next timer tick
        ...[0xba, 0x00, 0x06, 0xed], // mov dx, 0x600; in ax, dx
        ...[0xf6, 0xc4, 0x01], // test ah, 1: pressed?
        ...[0x74, 0xf6], // jz back to hlt
      ];
    case 'echo':
      return echo(step.port ?? 1);
    case 'halt':
      return sleepForEver;
  }
}

function print(text: string): number[] {
  const bytes = [...new TextEncoder().encode(text), 0];
  const loop = [
    0x5e, // pop si: the address of the text, pushed by the call below
    0xac, // lodsb
    ...[0x84, 0xc0], // test al, al
    ...[0x74, printAl.length + 2], // jz behind the loop
    ...printAl,
    ...[0xeb, 0x100 - (printAl.length + 7)], // jmp back to lodsb
    ...[0xff, 0xe6], // jmp si: it points behind the text's zero now
  ];
  // jmp to the call behind the loop; the loop; call back to it, which pushes the address of the text that follows.
  const back = 0x10000 - (loop.length + 3);
  return [0xeb, loop.length, ...loop, 0xe8, back & 0xff, back >> 8, ...bytes];
}

const sectorAt0x7e00 = (service: 0x02 | 0x03): number[] => [
  ...[0xb8, 0x01, service], // mov ax, service << 8 | 1 sector
  ...[0xb9, 0x02, 0x00], // mov cx, 2: cylinder 0, sector 2
  ...[0xb6, 0x00, 0x8a, 0x16, 0x00, 0x05], // mov dh, 0; mov dl, [0x500]
  ...[0xbb, 0x00, 0x7e], // mov bx, 0x7e00
  ...[0xcd, 0x13], // int 0x13
];

const countBoots = [
  ...sectorAt0x7e00(0x02),
  ...[0xa0, 0x00, 0x7e, 0x04, 0x30], // mov al, [0x7e00]; add al, '0'
  ...printAl,
  ...[0xfe, 0x06, 0x00, 0x7e], // inc byte [0x7e00]
  ...sectorAt0x7e00(0x03),
];

const sectorsPerCluster = 128;

/** By the BIOS's extended write, which takes the number of the sector as it is. */
function writeClusters(count: number): number[] {
  const end = (count + 1) * sectorsPerCluster;
  if (end > 0xffff)
    throw new RangeError(`a boot sector's loop reaches ${0xffff / sectorsPerCluster} clusters, not ${count}`);
  const loop = [
    ...[0xb4, 0x43, 0xb0, 0x00], // mov ah, 0x43; mov al, 0: write, without verifying
    ...[0x8a, 0x16, 0x00, 0x05], // mov dl, [0x500]
    ...[0xbe, 0x00, 0x06], // mov si, 0x600
    ...[0xcd, 0x13], // int 0x13
    ...[0x81, 0x06, 0x08, 0x06, sectorsPerCluster, 0x00], // add word [0x608], 128
    ...[0x81, 0x3e, 0x08, 0x06, end & 0xff, end >> 8], // cmp word [0x608], end
  ];
  return [
    ...[0xc7, 0x06, 0x00, 0x06, 0x10, 0x00], // mov word [0x600], 16: the size of this packet
    ...[0xc7, 0x06, 0x02, 0x06, 0x01, 0x00], // mov word [0x602], 1 sector
    ...[0xc7, 0x06, 0x04, 0x06, 0x00, 0x7e], // mov word [0x604], 0x7e00: the data
    ...[0xc7, 0x06, 0x06, 0x06, 0x00, 0x00], // mov word [0x606], 0: its segment
    ...[0xc7, 0x06, 0x08, 0x06, sectorsPerCluster, 0x00], // mov word [0x608], 128: the first sector
    ...[0xc7, 0x06, 0x0a, 0x06, 0x00, 0x00], // mov word [0x60a], 0
    ...[0xc7, 0x06, 0x0c, 0x06, 0x00, 0x00], // mov word [0x60c], 0
    ...[0xc7, 0x06, 0x0e, 0x06, 0x00, 0x00], // mov word [0x60e], 0
    ...loop,
    ...[0x72, 0x100 - (loop.length + 2)], // jb back to the loop
  ];
}
