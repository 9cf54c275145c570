import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/errors.ts';
import { parseImageMap } from './image-map.ts';

const shipped = readFileSync(join(import.meta.dirname, '../../../examples/orchestrator-image-map.yaml'), 'utf8');
const one = (fields: string): string => `images:\n  debian:\n    source: https://example.org/debian.qcow2\n${fields}`;

function refusal(text: string): string {
  try {
    parseImageMap(text);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'InvalidRequest') return error.message;
    throw error;
  }
  return 'accepted';
}

describe('the image map', () => {
  it('as shipped has the default label, its alias, the image and three sizes', () => {
    const map = parseImageMap(shipped);
    expect(map.defaultLabel).toBe('illumos-latest');
    expect(map.sizes).toEqual([
      { name: 'small', cpus: 1, memoryMiB: 1024 },
      { name: 'medium', cpus: 2, memoryMiB: 2048 },
      { name: 'large', cpus: 4, memoryMiB: 4096 },
    ]);
    expect(map.images).toMatchObject([
      {
        name: 'openindiana-hipster',
        spec: {
          source: expect.stringMatching(/^https:\/\/dlc\.openindiana\.org\/.*\.zstd$/),
          localPath: '/var/lib/berth/images/openindiana-hipster.img',
          decompress: 'zstd',
          nocloud: true,
          backend: 'zones',
          aliases: ['illumos-latest', 'default'],
          preload: true,
        },
      },
    ]);
  });

  it('may be empty', () => {
    expect(parseImageMap('')).toEqual({ images: [], sizes: [] });
    expect(parseImageMap('images:\nsizes: {}\n')).toEqual({ images: [], sizes: [] });
  });

  it.each([
    ['noop', 'fake'],
    ['fake', 'fake'],
    ['libvirt', 'libvirt'],
  ])('takes the backend %s for the driver %s', (backend, driver) => {
    expect(parseImageMap(one(`    backend: ${backend}\n`)).images[0]?.spec.backend).toBe(driver);
  });

  it.each([
    ['MiB when bare', 'ram: 2048', { memoryMiB: 2048 }],
    ['MiB by name', 'ram_mb: 512', { memoryMiB: 512 }],
    ['with a unit', 'ram: 1.5GiB', { memoryMiB: 1536 }],
    ['GiB when bare', 'disk: 20', { diskGiB: 20 }],
    ['GiB by name', 'disk_gb: 8', { diskGiB: 8 }],
    ['with a larger unit', 'disk: 1TiB', { diskGiB: 1024 }],
    ['whole CPUs', 'cpu: 4', { cpus: 4 }],
    ['in defaults', 'defaults: {cpu: 2, ram_mb: 1024, disk_gb: 10}', { cpus: 2, memoryMiB: 1024, diskGiB: 10 }],
  ])('takes amounts %s', (_, line, defaults) => {
    expect(parseImageMap(one(`    ${line}\n`)).images[0]?.spec.defaults).toEqual(defaults);
  });

  it('takes mirrors, sizes and pins', () => {
    const fields =
      '    mirrors: [https://example.net/debian.qcow2]\n    size_bytes: 123\n    pinned: true\n    default_user: debian\n';
    expect(parseImageMap(one(fields)).images[0]?.spec).toMatchObject({
      mirrors: ['https://example.net/debian.qcow2'],
      sizeBytes: 123,
      defaultUser: 'debian',
      pinned: true,
    });
  });

  it('takes checksums with and without their prefix', () => {
    const hex = 'ab'.repeat(32);
    expect(parseImageMap(one(`    checksum: ${hex}\n`)).images[0]?.spec.checksum).toBe(`sha256:${hex}`);
    expect(parseImageMap(one(`    checksum: sha256:${hex}\n`)).images[0]?.spec.checksum).toBe(`sha256:${hex}`);
  });

  it('follows aliases of aliases, and marks the image that the default label leads to', () => {
    const map = parseImageMap(`default_label: newest\naliases: {newest: stable, stable: debian}\n${one('')}`);
    expect(map.images[0]?.spec.aliases).toEqual(['newest', 'stable', 'default']);
  });

  const refusals: readonly (readonly [string, string, string | RegExp])[] = [
    ['an unknown key', 'imges: {}\n', 'line 1, column 1: unknown key "imges"; did you mean "images"?'],
    [
      'an unknown key of an image',
      one('    memroy: 5\n'),
      'line 4, column 5: unknown key "memroy" in images.debian; did you mean "memory"?',
    ],
    [
      'an unknown key of a size',
      'sizes:\n  small: {cpu: 1, ram: 512, gpus: 1}\n',
      /line 2, column 29: unknown key "gpus"/,
    ],
    ['a key twice', 'sizes: {}\nsizes: {}\n', /line 2, column 1: .*unique/],
    ['an image twice', 'images:\n  a: {source: http://x/y}\n  a: {source: http://x/z}\n', /line 3, column 3/],
    ['an anchor', 'images: &all {}\n', /anchors \(&all\)/],
    ['an alias of YAML', 'images: &all {}\nsizes: *all\n', /anchors|aliases/],
    ['a merge key', one('    <<: {cpu: 1}\n'), /merge keys/],
    ['a tag', 'images: !!python/object:os.system {}\n', /line 1/],
    ['two documents', 'images: {}\n---\nsizes: {}\n', /line 2|line 3/],
    ['a tab', '\timages: {}\n', /line 1, column 1/],
    ['a list for a mapping', 'images: [debian]\n', /images must be a mapping/],
    ['a bare word for a flag', one('    nocloud: no\n'), /line 4, column 5: nocloud must be true or false/],
    ['a number that is none', one('    cpu: 0o14x\n'), /cpu must be a whole number/],
    ['no CPU at all', one('    cpu: 0\n'), /from 1 to 1024/],
    ['part of a MiB', one('    ram: 0.3MiB\n'), /ram must be a whole number/],
    ['an unknown unit', one('    ram: 5 parsecs\n'), /line 4, column 5: ram must be/],
    ['an infinite amount', one('    ram: .inf\n'), /line 4/],
    ['one amount twice', one('    ram: 512\n    ram_mb: 512\n'), /line 5, column 5: ram_mb sets the same as ram/],
    ['one amount in two places', one('    cpu: 1\n    defaults: {cpu: 2}\n'), /repeats/],
    ['a source of another kind', 'images:\n  a: {source: ftp://x/y}\n', /line 2, column 7: source must be/],
    ['no source', 'images:\n  a: {nocloud: true}\n', 'line 2, column 3: source is missing'],
    ['a size that is none', one('    size_bytes: 0\n'), /line 4, column 5: size_bytes must be/],
    ['a password in a URL', 'images:\n  a:\n    source: https://me:secret@example.org/a\n', /line 3, column 5: source/],
    ['a local path that is relative', one('    local_path: images/a\n'), /line 4, column 5: local_path must be/],
    ['another packing', one('    decompress: rar\n'), /decompress must be one of: none, zstd, gzip, xz/],
    ['a broken checksum', one('    checksum: sha256:abc\n'), /line 4, column 5: checksum must be/],
    [
      'a name with a slash',
      'images:\n  ../etc: {source: http://x/y}\n',
      /line 2, column 3: "..\/etc" cannot be a name/,
    ],
    ['an alias of nothing', `aliases: {a: debain}\n${one('')}`, 'there is no image "debain"; did you mean "debian"?'],
    ['aliases in a circle', 'aliases: {a: b, b: a}\n', 'aliases lead in a circle: a -> b -> a'],
    ['an alias with the name of an image', `aliases: {debian: debian}\n${one('')}`, /cannot be an alias too/],
    ['a default label of nothing', `default_label: q\n${one('')}`, /line 1, column 1: there is no image "q"/],
    ['a size without memory', 'sizes: {small: {cpu: 1}}\n', 'size "small" does not set its ram'],
    ['more than 1 MiB', `#${'x'.repeat(1024 * 1024)}\n`, /larger than 1 MiB/],
    ['a key that is no string', '1: 2\n', /a key must be a string/],
    ['a value nested without end', `images: ${'['.repeat(2000)}`, /line 1/],
  ];
  it.each(refusals)('refuses %s', (_, text, message) => {
    expect(refusal(text)).toMatch(message);
  });

  it('refuses aliases that would grow without end, at once', () => {
    const levels = Array.from(
      { length: 9 },
      (_, i) =>
        `l${i}: &l${i} [${Array(9)
          .fill(i ? `*l${i - 1}` : 'lol')
          .join(', ')}]`,
    );
    expect(refusal(levels.join('\n'))).toMatch(/line 1, column \d+: anchors/);
  });

  it('tells the place to programs too', () => {
    expect(() => parseImageMap(one('    cpu: x\n'))).toThrow(
      expect.objectContaining({ field: 'images.debian.cpu', details: { line: 4, column: 5 } }),
    );
  });
});
