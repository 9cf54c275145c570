import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tarArchive } from '../ways-in/tar-archive.ts';
import { tarEntries } from './tar-entries.ts';
import { unpack } from './unpack.ts';

let base: string;
let root: string;
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'unpack-'));
  root = join(base, 'out');
});
afterEach(() => rm(base, { recursive: true }));

interface Made {
  readonly name: string;
  readonly type?: string;
  readonly target?: string;
  readonly content?: string;
}

function block({ name, type = '0', target = '', content = '' }: Made): Buffer {
  const head = Buffer.alloc(512);
  head.write(name, 0);
  head.write('0000644\0', 100);
  head.write(`${Buffer.byteLength(content).toString(8).padStart(11, '0')}\0`, 124);
  head.write('00000000000\0', 136);
  head.write(' '.repeat(8), 148);
  head.write(type, 156);
  head.write(target, 157);
  head.write('ustar\x0000', 257);
  head.write(
    `${head
      .reduce((all, byte) => all + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  const data = Buffer.from(content);
  return Buffer.concat([head, data, Buffer.alloc(-data.length & 511)]);
}

/** In pieces of `size` bytes. */
async function* archive(entries: readonly Made[], size = 100_000): AsyncGenerator<Uint8Array> {
  const all = Buffer.concat([...entries.map(block), Buffer.alloc(1024)]);
  for (let at = 0; at < all.length; at += size) yield await Promise.resolve(all.subarray(at, at + size));
}

async function all(items: AsyncIterable<unknown>): Promise<void> {
  const each = items[Symbol.asyncIterator]();
  while (!(await each.next()).done);
}

/** Follows no link. */
async function found(path: string, before = ''): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  const names = await Promise.all(
    entries.map(async (entry) => {
      const name = `${before}${entry.name}`;
      return entry.isDirectory() ? [name, ...(await found(join(path, entry.name), `${name}/`))] : [name];
    }),
  );
  return names.flat().sort();
}

describe('artifacts', () => {
  it.each([1, 7, 511, 512, 513, 100_000])('are unpacked from pieces of %s bytes', async (size) => {
    const entries = [
      { name: './a/', type: '5' },
      { name: './a/b.txt', content: 'one' },
      { name: 'c', content: '' },
    ];
    const done = await unpack(archive(entries, size), root);
    expect(done).toEqual({ files: 2, bytes: 3, skipped: [] });
    expect(await readFile(join(root, 'a/b.txt'), 'utf8')).toBe('one');
    expect(await found(root)).toEqual(['a', 'a/b.txt', 'c']);
  });

  it('of any name and size that an archive can have', async () => {
    const long = `${'long/'.repeat(40)}${'n'.repeat(120)} ä.txt`;
    await mkdir(join(base, 'in', ...'long/'.repeat(40).split('/')), { recursive: true });
    await writeFile(join(base, 'in', long), 'x'.repeat(300_000), { mode: 0o755 });
    await symlink('a', join(base, 'in', 'self'));
    await writeFile(join(base, 'in', 'a'), 'a');
    expect(await unpack(tarArchive(join(base, 'in'), 'in'), root)).toMatchObject({ files: 2, skipped: [] });
    expect((await stat(join(root, 'in', long))).size).toBe(300_000);
    expect((await stat(join(root, 'in', long))).mode & 0o777).toBe(0o755);
    expect(await readlink(join(root, 'in', 'self'))).toBe('a');
  });

  it('of GNU tar and busybox tar, with long names', async () => {
    const name = `${'d'.repeat(90)}/${'f'.repeat(90)}`;
    const entries = [
      { name: '././@LongLink', type: 'L', content: `${name}\0` },
      { name: name.slice(0, 100), content: 'x' },
    ];
    expect(await unpack(archive(entries), root)).toMatchObject({ files: 1 });
    expect(await readFile(join(root, name), 'utf8')).toBe('x');
  });

  it('replace files of the same name, and follow no link to do so', async () => {
    await mkdir(root);
    await writeFile(join(base, 'outside'), 'kept');
    await symlink('../outside', join(root, 'a'));
    await writeFile(join(root, 'b'), 'old and long');
    await unpack(
      archive([
        { name: 'a', content: 'new' },
        { name: 'b', content: 'new' },
      ]),
      root,
    );
    expect(await readFile(join(root, 'a'), 'utf8')).toBe('new');
    expect(await readFile(join(root, 'b'), 'utf8')).toBe('new');
    expect(await readFile(join(base, 'outside'), 'utf8')).toBe('kept');
  });

  const rows: [name: string, entries: Made[], left: string[], why: string][] = [
    ['an absolute name', [{ name: '/tmp/x', content: 'x' }], [], '/tmp/x: its name leads out'],
    ['a name with ..', [{ name: 'a/../../x', content: 'x' }], [], 'its name leads out'],
    ['a device', [{ name: 'null', type: '3' }], [], 'null: it is neither a file'],
    ['a link upwards', [{ name: 'up', type: '2', target: '../secret' }], [], 'up: it is a link that leads out'],
    ['an absolute link', [{ name: 'up', type: '2', target: '/etc/passwd' }], [], 'up: it is a link that leads out'],
    ['a link to nowhere', [{ name: 'no', type: '2', target: 'nothing' }], [], 'or nowhere'],
    [
      'a file through a link',
      [
        { name: 'up', type: '2', target: '..' },
        { name: 'up/x', content: 'x' },
      ],
      [],
      'up/x: a part of its path is no directory',
    ],
    [
      'a link through a link',
      [
        { name: 'd/out', type: '2', target: 'in/../../secret' },
        { name: 'd/in', type: '2', target: '..' },
        { name: 'f', content: 'x' },
      ],
      ['d', 'd/in', 'f'],
      'd/out: it is a link',
    ],
    ['another name of a file outside', [{ name: 'h', type: '1', target: '../secret' }], [], 'h: the file'],
    [
      'another name of a link',
      [
        { name: 'l', type: '2', target: '../secret' },
        { name: 'h', type: '1', target: 'l' },
      ],
      [],
      'h: the',
    ],
    ['a file in place of a directory', [{ name: 'd/f' }, { name: 'd', content: 'x' }], ['d', 'd/f'], 'd: there is a'],
  ];
  it.each(rows)('never are %s', async (_, entries, left, why) => {
    await writeFile(join(base, 'secret'), 'secret');
    const { skipped } = await unpack(archive(entries), root);
    expect(await found(root)).toEqual(left);
    expect(skipped.join('\n')).toContain(why);
    expect(await readdir(base)).toEqual(['out', 'secret']);
    expect(await readFile(join(base, 'secret'), 'utf8')).toBe('secret');
  });

  it('may be a second name of a file', async () => {
    const entries = [
      { name: 'a', content: 'one' },
      { name: 'b', type: '1', target: './a' },
    ];
    expect(await unpack(archive(entries), root)).toMatchObject({ files: 2, skipped: [] });
    expect(await readFile(join(root, 'b'), 'utf8')).toBe('one');
  });
});

describe('a damaged archive', () => {
  const whole = Buffer.concat([block({ name: 'a', content: 'one' }), Buffer.alloc(1024)]);
  const changed = (at: number): Buffer => {
    const copy = Buffer.from(whole);
    copy[at] = 0x7a;
    return copy;
  };
  const rows: [name: string, bytes: Buffer, why: RegExp][] = [
    ['nothing', Buffer.alloc(0), /its end is missing/],
    ['a header that is cut', whole.subarray(0, 100), /its end is missing/],
    ['a file that is cut', whole.subarray(0, 514), /its end is missing/],
    ['no end', whole.subarray(0, 1024), /its end is missing/],
    ['another name than its checksum', changed(0), /a checksum is wrong/],
    ['a size that is no number', changed(124), /a number is none|a checksum is wrong/],
    ['a name that is endless', block({ name: 'x', type: 'L', content: 'n'.repeat(70_000) }), /a name is too long/],
    ['a record of pax that is cut', block({ name: 'x', type: 'x', content: '99 path=a\n' }), /is cut/],
  ];
  it.each(rows)('with %s is refused', async (_, bytes, why) => {
    const pieces = (async function* () {
      yield await Promise.resolve(bytes);
    })();
    await expect(all(tarEntries(pieces))).rejects.toThrow(why);
  });
});
