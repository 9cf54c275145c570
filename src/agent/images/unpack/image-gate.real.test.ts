import { execFile } from 'node:child_process';
import { mkdtemp, open, rm, truncate, writeFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkImage, type GateResult } from './image-gate.ts';
import { type Qcow2Fields, qcow2File } from '../test-qcow2.ts';

const run = promisify(execFile);
let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-gate-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const TiB = 1024 ** 4;

async function judgeFile(path: string, format: 'qcow2' | 'raw' = 'qcow2', virtualBytesMax = TiB): Promise<GateResult> {
  const file = await open(path);
  try {
    return await checkImage(file, format, { virtualBytesMax });
  } finally {
    await file.close();
  }
}

async function judge(bytes: Buffer, format: 'qcow2' | 'raw' = 'qcow2'): Promise<string> {
  const path = join(directory, 'image');
  await writeFile(path, bytes);
  const verdict = await judgeFile(path, format);
  return verdict.ok ? `ok ${verdict.virtualSizeBytes}` : verdict.reason;
}

describe('a qcow2 file', () => {
  it('passes when it is whole and stands for itself', async () => {
    expect(await judge(qcow2File())).toBe('ok 1048576');
    expect(await judge(qcow2File({ version: 2 }))).toBe('ok 1048576');
  });

  const refusals: readonly (readonly [string, Qcow2Fields, RegExp])[] = [
    ['of version 1', { version: 1 }, /version 1/],
    ['of version 4', { version: 4 }, /version 4/],
    ['with a backing file', { backingFileOffset: 112n, backingFileSize: 11 }, /backing file/],
    ['with a backing file name of no place', { backingFileSize: 11 }, /backing file/],
    ['with cluster_bits 0', { clusterBits: 0 }, /cluster_bits 0/],
    ['with cluster_bits 63', { clusterBits: 63 }, /cluster_bits 63/],
    ['of no size', { virtualSize: 0n }, /virtual size/],
    ['of 8 PiB', { virtualSize: 8n * 1024n ** 5n }, /larger than/],
    ['of 2^63-1 bytes', { virtualSize: 2n ** 63n - 1n }, /larger than/],
    ['of a broken number of sectors', { virtualSize: 1_000_001n }, /virtual size/],
    ['that is encrypted', { encryption: 2 }, /encrypted/],
    ['with internal snapshots', { snapshots: 1 }, /snapshots/],
    ['not closed cleanly', { incompatible: 1n }, /dirty/],
    ['marked corrupt', { incompatible: 2n }, /corrupt/],
    ['with an external data file', { incompatible: 4n }, /another file/],
    ['with an unknown incompatible bit', { incompatible: 32n }, /0x20/],
    ['with the highest incompatible bit', { incompatible: 1n << 63n }, /not known/],
    ['with a compression bit but no type', { incompatible: 8n }, /compression/],
    ['with refcount_order 63', { refcountOrder: 63 }, /refcount_order/],
    ['with a header of 0 bytes', { headerLength: 0 }, /header/],
    ['with a header of 2 GiB', { headerLength: 2 ** 31 }, /header/],
    ['with an L1 table of 2^31 entries', { l1Entries: 2 ** 31 }, /L1 table/],
    ['with an L1 table too small for its size', { l1Entries: 0 }, /L1 table/],
    ['with an L1 table beyond its end', { l1At: 65_536n * 100n }, /L1 table/],
    ['with an L1 table at no cluster', { l1At: 65_536n * 3n + 8n }, /L1 table/],
    ['with a refcount table beyond its end', { refcountTableAt: 1n << 40n }, /refcount table/],
    ['with a refcount table of 2^32 clusters', { refcountTableClusters: 2 ** 32 - 1 }, /refcount table/],
    ['with an L2 table beyond its end', { l1Entry: (1n << 63n) | (1n << 40n) }, /L2 table/],
    ['with data beyond its end', { l2Entry: (1n << 63n) | (65_536n * 6n) }, /the data at 0/],
    ['with compressed data beyond its end', { l2Entry: (1n << 62n) | (1n << 40n) }, /the data at 0/],
  ];
  it.each(refusals)('is refused %s', async (_, fields, reason) => {
    expect(await judge(qcow2File(fields))).toMatch(reason);
  });

  it('is refused when it is cut off anywhere', async () => {
    const whole = qcow2File();
    for (const length of [4, 71, 103, 65_536, 131_072, 200_000, 262_144, 327_680, whole.length - 1])
      expect(await judge(whole.subarray(0, length)), `cut to ${length}`).not.toMatch(/^ok/);
    expect(await judge(Buffer.alloc(0))).toMatch(/empty/);
  });

  it('is refused when two L1 entries name one table, so that no small file costs a long walk', async () => {
    const file = qcow2File({ virtualSize: 1024n ** 3n, l1Entries: 2 });
    file.writeBigUInt64BE(file.readBigUInt64BE(3 * 65_536), 3 * 65_536 + 8);
    expect(await judge(file)).toMatch(/twice/);
  });

  it.each([
    ['gzip', Buffer.from('1f8b0800', 'hex')],
    ['zstd', Buffer.from('28b52ffd', 'hex')],
    ['xz', Buffer.from('fd377a585a00', 'hex')],
  ])('that is packed with %s says how to declare it', async (packing, magic) => {
    expect(await judge(magic)).toContain(`"decompress": "${packing}"`);
  });

  it.each([
    ['plain', 'qemu-img create -f qcow2 F 3G'],
    ['of an odd size', 'qemu-img create -f qcow2 F 1000000512'],
    ['of version 2', 'qemu-img create -f qcow2 -o compat=0.10 F 1G'],
    ['of small clusters', 'qemu-img create -f qcow2 -o cluster_size=512 F 64M'],
    ['of large clusters', 'qemu-img create -f qcow2 -o cluster_size=2M F 1T'],
    ['with its metadata laid out', 'qemu-img create -f qcow2 -o preallocation=metadata F 300M'],
    ['with extended L2 entries', 'qemu-img create -f qcow2 -o extended_l2=on,cluster_size=128k F 1G'],
    ['with data', 'qemu-img convert -f raw -O qcow2 D F'],
    ['with compressed data', 'qemu-img convert -c -f raw -O qcow2 D F'],
    ['with zstd-compressed data', 'qemu-img convert -c -o compression_type=zstd -f raw -O qcow2 D F'],
    ['with compressed data in large clusters', 'qemu-img convert -c -o cluster_size=2M -f raw -O qcow2 D F'],
    ['with data in extended clusters', 'qemu-img convert -o extended_l2=on -f raw -O qcow2 D F'],
  ])("made by QEMU's own tool passes: %s", async (_, command) => {
    const data = join(directory, 'data');
    // 1000 KiB + 1 sector: the last cluster is not whole.
    await writeFile(
      data,
      Buffer.concat([Buffer.from(Array.from({ length: 500_000 }, (_, i) => (i * i * 7) % 251)), Buffer.alloc(524_512)]),
    );
    const path = join(directory, 'made');
    await rm(path, { force: true });
    const [program = '', ...words] = command
      .split(' ')
      .map((word) => (word === 'F' ? path : word === 'D' ? data : word));
    await run(program, words);
    const info: unknown = JSON.parse((await run('qemu-img', ['info', '--output=json', '-f', 'qcow2', path])).stdout);
    expect(await judgeFile(path, 'qcow2', 2 * TiB)).toEqual({
      ok: true,
      virtualSizeBytes: (info as { 'virtual-size': number })['virtual-size'],
    });
    if (command.includes('convert')) {
      const { size } = await stat(path);
      await truncate(path, Math.floor(size * 0.6));
      expect(await judgeFile(path)).toMatchObject({ ok: false });
    }
  });
});

describe('a raw file', () => {
  it('passes with whole sectors', async () => {
    expect(await judge(Buffer.alloc(1024, 1), 'raw')).toBe('ok 1024');
  });

  const at = (text: string, position: number): Buffer => {
    const bytes = Buffer.alloc(40_960);
    bytes.write(text, position, 'latin1');
    return bytes;
  };
  it.each([
    ['qcow2', qcow2File(), /content is qcow2/],
    ['vmdk', at('KDMV', 0), /content is vmdk/],
    ['a vmdk descriptor', at('# Disk DescriptorFile\n', 0), /content is vmdk/],
    ['vpc', at('conectix', 0), /content is vpc/],
    ['vpc with only a footer', at('conectix', 40_960 - 512), /footer/],
    ['vdi', at('\x7f\x10\xda\xbe', 64), /content is vdi/],
    ['luks', at('LUKS\xba\xbe', 0), /content is luks/],
    ['qed', at('QED\0', 0), /content is qed/],
    ['a CD image', at('CD001', 0x8001), /ISO 9660/],
    ['part of a sector', Buffer.alloc(1000, 1), /cut off/],
    ['nothing', Buffer.alloc(0), /empty/],
  ])('is refused when it is %s', async (_, bytes, reason) => {
    expect(await judge(bytes, 'raw')).toMatch(reason);
  });
});
